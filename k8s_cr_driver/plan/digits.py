# SPDX-License-Identifier: Apache-2.0
"""The form of a plan's digest. Who checks a request reads it without what computes a plan, whose imports take long."""

from __future__ import annotations

DIGITS = 32
"""Hexadecimal ones."""
