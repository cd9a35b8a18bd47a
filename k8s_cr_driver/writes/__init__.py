# SPDX-License-Identifier: Apache-2.0
"""Every write of one object, by the rules of whose it is."""
