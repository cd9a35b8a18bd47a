# SPDX-License-Identifier: Apache-2.0
"""The classes of kinds, and the health of objects. Pure functions: no requests."""
