# SPDX-License-Identifier: Apache-2.0
"""The check of custom resources in a package, beside the API server's own packages as an oracle."""
