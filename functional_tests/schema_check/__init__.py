"""The check of custom resources in a package, beside the API server's own packages as an oracle."""
