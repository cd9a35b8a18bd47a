# SPDX-License-Identifier: Apache-2.0
"""The objects that must exist: each is applied, and assessed until it is ready."""
