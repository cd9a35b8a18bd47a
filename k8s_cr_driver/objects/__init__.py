"""Plain JSON objects: identity, fields, CRDs, dependencies. Pure functions."""
