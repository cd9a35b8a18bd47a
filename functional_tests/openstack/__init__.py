# SPDX-License-Identifier: Apache-2.0
"""Tests with the bed's cloud."""
