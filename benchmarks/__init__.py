# SPDX-License-Identifier: Apache-2.0
"""How fast the engine is, beside its peers, on a real API server. `python -m benchmarks`."""
