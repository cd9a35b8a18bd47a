# SPDX-License-Identifier: Apache-2.0
"""The objects that go: which they are, and their deletion."""
