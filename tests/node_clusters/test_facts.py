# SPDX-License-Identifier: Apache-2.0
"""The look at a server, as a shell of this host takes it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from k8s_cr_driver.node_clusters import facts
from k8s_cr_driver.ssh import units

from .clusters import MASTERS

PRINTED = "interface=eth0\nholds=yes\njoined=yes\ncontrol=yes\ninstalled=i1\napplied=\nfile=abc  /etc/haproxy/haproxy.cfg\n"


def test_a_look_at_a_server_that_has_nothing() -> None:
    command = facts.of_server(MASTERS[0], "10.0.0.100")
    printed = subprocess.run(command.argv, capture_output=True, text=True, check=True).stdout
    assert not facts.read_server(printed).is_joined


def test_what_a_look_prints() -> None:
    found = facts.read_server(f"{PRINTED}unit=haproxy active\nunit=keepalived inactive\n")
    assert (found.interface, found.holds_vip, found.is_joined, found.is_control_plane) == ("eth0", True, True, True)
    assert (found.digests, found.active) == ({"/etc/haproxy/haproxy.cfg": "abc"}, frozenset({"haproxy"}))


def test_a_server_on_which_kubeadm_has_not_ended_well_is_in_no_cluster() -> None:
    found = facts.read_server(f"{PRINTED}unfinished=yes\n")
    assert (found.is_joined, found.is_control_plane) == (False, False)


@pytest.mark.parametrize(
    ("files", "is_unfinished"),
    [
        ({}, False),
        ({"log": "", "status": "0\n"}, False),
        ({"log": "", "status": "1\n"}, True),
        ({"log": ""}, True),
        ({"status": "0\n"}, False),
    ],
    ids=["never begun", "ended well", "failed", "running or cut", "its log was removed"],
)
def test_a_step_is_unfinished_until_it_has_ended_well(tmp_path: Path, files: dict[str, str], is_unfinished: bool) -> None:
    for end, text in files.items():
        (tmp_path / f"k8s-cr-join.{end}").write_text(text)
    text = f'{units.UNFINISHED}if unfinished "$1" "$2"; then echo yes; fi'
    argv = ["sh", "-euc", text, "sh", str(tmp_path), "k8s-cr-join"]
    assert (subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "yes\n") is is_unfinished
