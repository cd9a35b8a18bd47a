"""The classes of kinds, and the health of objects. Pure functions: no requests."""
