# SPDX-License-Identifier: Apache-2.0
"""The tutorial of a workload cluster without a cloud, command by command, in a shell on this bed."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from ..families import BROUGHT

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "doc" / "source" / "tutorial" / "in_memory.rst"
NEEDED = (".venv", "builds", "functional_tests", "mgmt", "sample_packages")
"""What the commands take from the project's folder, into which they are not to write."""
OF_A_BED_OF_ITS_OWN = ("make bed-ready", "$bed up", "$bed down")

pytestmark = pytest.mark.alone(*BROUGHT)


def script() -> str:
    blocks = re.findall(r"\.\. code-block:: bash\n\n((?:   .*\n|\n)+)", PAGE.read_text())
    lines = "\n".join(map(textwrap.dedent, blocks)).splitlines()
    assert set(OF_A_BED_OF_ITS_OWN) < set(lines)
    lines = [line for line in lines if line not in OF_A_BED_OF_ITS_OWN]
    return "\n".join(["set -eu", "trap 'jobs -p | xargs --no-run-if-empty kill' EXIT", *lines])


def test_the_kubeconfig_of_a_workload_cluster_arrives_by_the_commands_of_the_tutorial(tmp_path: Path) -> None:
    for name in NEEDED:
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run(["bash", "-c", script()], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    nodes = re.findall(r"^red-\S+", done.stdout, re.MULTILINE)
    assert (len(nodes), len(set(nodes))) == (3 + 4, 4), "1 + 2 Nodes, then one more"
    assert [path.suffix for path in (tmp_path / "received").iterdir() if not path.name.startswith(".")] == [".json"]
