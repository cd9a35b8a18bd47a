# SPDX-License-Identifier: Apache-2.0
"""What a run says: before it writes, while it waits, and at its deadline."""
