# SPDX-License-Identifier: Apache-2.0
"""`nova-compute` with the bed's driver, which Nova looks for in its package `nova.virt` only."""

from pathlib import Path

import nova.virt
from nova.cmd import compute

nova.virt.__path__.append(str(Path(__file__).parent))
compute.main()
