# SPDX-License-Identifier: Apache-2.0
"""Plain JSON objects: identity, fields, CRDs, dependencies. Pure functions."""
