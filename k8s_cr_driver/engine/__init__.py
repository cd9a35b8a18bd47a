"""The convergence engine: a set of objects becomes real on a cluster. `converge.converge` is the one way in."""
