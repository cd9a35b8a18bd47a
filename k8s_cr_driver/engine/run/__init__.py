# SPDX-License-Identifier: Apache-2.0
"""One run: its operation, its loop, its times, and the order of its phases."""
