"""How fast the engine is, beside its peers, on a real API server. `python -m benchmarks`."""
