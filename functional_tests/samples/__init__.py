# SPDX-License-Identifier: Apache-2.0
"""Custom resources of other projects, with their unmodified controllers."""
