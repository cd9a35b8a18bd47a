# SPDX-License-Identifier: Apache-2.0
"""What is loaded into OpenStack's own services, in place of drivers for hardware that the bed has not."""
