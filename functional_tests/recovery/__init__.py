# SPDX-License-Identifier: Apache-2.0
"""Conductors and control planes that die, are overtaken or start again in the middle of operations."""
