# SPDX-License-Identifier: Apache-2.0
"""Where the test bed finds the project, and keeps the state that `down` removes."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
STATE = Path("/var/lib/k8s-cr-driver")
