# SPDX-License-Identifier: Apache-2.0
"""What a run sees: the watches of its kinds, and the kinds that cannot be watched."""
