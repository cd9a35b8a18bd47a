# SPDX-License-Identifier: Apache-2.0
"""Which instance owns an object, and the writes and deletions that respect it."""
