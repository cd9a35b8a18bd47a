"""Whose an object is, and every write that respects it."""
