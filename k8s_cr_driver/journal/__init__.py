# SPDX-License-Identifier: Apache-2.0
"""The journal of an instance, one ConfigMap: which objects it has, and which worker may write them."""
