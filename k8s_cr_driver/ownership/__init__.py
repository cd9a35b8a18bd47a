"""Which instance owns an object, and the writes and deletions that respect it."""
