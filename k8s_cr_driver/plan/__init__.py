# SPDX-License-Identifier: Apache-2.0
"""What becomes of each object: the rule that operations and `k8s-cr` follow. Pure."""

DIGITS = 32
"""Hexadecimal ones of a plan's digest. Who checks a request imports no more than this."""
