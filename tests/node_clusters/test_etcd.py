# SPDX-License-Identifier: Apache-2.0
"""What is asked of etcd, as a curl sees it that records its arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from k8s_cr_driver.node_clusters import facts
from k8s_cr_driver.node_clusters.kubeadm import etcd
from k8s_cr_driver.ssh.command import Command

from .clusters import MASTERS

CURL = """#!/bin/sh
printf "<%s>" "$@"
case $* in */health) echo '{"health":"true"}' ;; esac
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A curl that prints its arguments, and a kubectl without nodes."""
    for name, text in (("curl", CURL), ("kubectl", "#!/bin/sh\necho {}\n")):
        file = tmp_path / name
        file.write_text(text)
        file.chmod(0o755)
    return tmp_path


def printed(command: Command, programs: Path) -> str:
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    return subprocess.run(command.argv, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_member_is_removed_by_its_id(programs: Path) -> None:
    said = printed(etcd.remove_member("1234"), programs)
    assert said.endswith('<--request><POST><--data><{"ID": "1234"}><https://127.0.0.1:2379/v3/cluster/member/remove>')
    assert "<--max-time><30>" in said and "<--fail>" in said


def test_a_look_asks_for_the_members_once_and_each_for_its_health(programs: Path) -> None:
    nodes, members, *healthy = printed(facts.of_cluster(MASTERS[0], MASTERS), programs).splitlines()
    assert (nodes, healthy) == ("{}", [one.address for one in MASTERS])
    assert members.endswith("<--request><POST><--data><{}><https://127.0.0.1:2379/v3/cluster/member/list>")
