# SPDX-License-Identifier: Apache-2.0
"""Servers that cannot become nodes: what the error says, what stays as it was, and where secrets do not appear.

Nothing here reaches kubeadm, so the servers have no Kubernetes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ..testbed import nodes
from ..testbed.nodes import PASSWORD, USER, Node
from ..testbed.processes import until
from . import leaks
from .script import Body, KilledWhen
from .site import FAULTS, MASTERS, WORKERS, Server, Site, name_of

SITE = partial(Site, driver="persistent_volumes", base=FAULTS, image=nodes.plain)
HIDDEN = "word-of-the-proxy"
PROXY = {"http_proxy": f"http://someone:{HIDDEN}@proxy.example:3128"}
OURS = "/var/lib/k8s-cr-nodes"
UNIT = "k8s-cr-install"
# Seconds, however busy the host is.
UP_WITHIN = 240.0
# The time limit of a request that is to pass.
SHORT = 12


@pytest.fixture(scope="module", autouse=True)
def servers(site: Site) -> None:
    """A master and a worker."""
    booted = [site.nodes[site.add(vdu).id] for vdu in (MASTERS, WORKERS)]
    assert until(lambda: all(map(accepts_logins, booted)), UP_WITHIN)


@pytest.fixture(scope="module", autouse=True)
def arguments() -> Iterator[leaks.Arguments]:
    """Those of all processes, of the servers, too, from the first test on."""
    with leaks.watched() as found:
        yield found


@pytest.fixture
def worker(site: Site) -> Server:
    [one] = site.of(WORKERS)
    return one


@pytest.fixture
def node(site: Site, worker: Server) -> Node:
    return site.nodes[worker.id]


def operate(
    site: Site,
    operation: str,
    *removes: Server,
    script: str = "exit 0",
    within: int = 0,
    killed_when: KilledWhen | None = None,
    **changes: Any,
) -> str:
    """The failure of the operation; with another script of the package, and other parameters."""
    site.conductor.write("Scripts/install.sh", f"#!/bin/sh\n{script}\n")
    given = site.parameters
    masters = {**given["master_node"], "cluster_cp_name": f"{MASTERS}_CP1"}
    parameters: Body = {**given, "master_node": masters, "proxy": PROXY, **changes}
    site.error_data.clear()
    given = {name: one for name, one in parameters.items() if one}
    outcome = site.operate(operation, *removes, within=within, killed_when=killed_when, **given)
    assert outcome.failure, "the servers cannot become nodes"
    assert len(outcome.failure) < 4096
    return outcome.failure


def test_a_server_without_space_is_named_and_its_files_stay(site: Site, worker: Server, node: Node) -> None:
    node.machine.run("mkdir", "-p", OURS)
    node.machine.run("mount", "-t", "tmpfs", "-o", "size=64k", "none", OURS)
    node.machine.run("sh", "-c", f"echo old >{OURS}/install; cat /dev/zero >{OURS}/full 2>/dev/null || true")
    failure = operate(site, "instantiate_end", script="# " + 8192 * "x")
    assert f"{name_of(worker)} ({worker.address}): the new {OURS}/install ended with status 1" in failure
    assert "No space left on device" in failure
    assert node.machine.run("ls", "-A", OURS).split() == ["full", "install"]
    assert node.machine.run("cat", f"{OURS}/install") == "old\n"
    node.machine.run("umount", OURS)


def test_a_script_that_hangs_ends_with_the_time_of_the_request_and_is_not_started_twice(
    site: Site, worker: Server, node: Node
) -> None:
    """Though the conductor has died meanwhile."""
    script = "[ $(jq --raw-output .role) = worker ] || exit 0; date >>/run/begun\n"
    script += "while [ -e /run/hang ]; do sleep 0.2; done; echo went on; exit 9"
    node.machine.run("touch", "/run/hang")
    operate(site, "instantiate_end", script=script, killed_when=lambda _: has_begun(node))
    failure = operate(site, "instantiate_end", script=script, within=SHORT)
    assert f"{name_of(worker)}: the time limit of the operation has passed at the package's script; retry it" in failure
    assert node.machine.run("systemctl", "is-active", UNIT) == "active\n"
    assert len(node.machine.run("cat", "/run/begun").splitlines()) == 1
    node.machine.run("rm", "/run/hang")
    assert "the package's script ended with status 9: went on" in operate(site, "instantiate_end", script=script)


def test_a_script_that_floods_is_reported_by_its_last_lines(site: Site) -> None:
    failure = operate(site, "instantiate_end", script="yes flood | head -n 10000000; echo the end; exit 9")
    assert "the package's script ended with status 9: flood | " in failure and failure.endswith("| the end")


@pytest.mark.parametrize(
    "line",
    [
        "cat",
        f"echo {HIDDEN}",
        f"echo 'password: {HIDDEN}'",
        f"echo curl --proxy-password {HIDDEN}",
        "ssh-keygen -q -t rsa -N '' -f /run/$$; cat /run/$$",
        "ssh-keygen -q -t rsa -N '' -f /run/$$; tail -n 12 /run/$$",
    ],
    ids=["its input", "a word", "a field", "an option", "a key", "the end of a key"],
)
def test_a_script_that_prints_a_secret_shows_it_to_nobody(site: Site, line: str) -> None:
    failure = operate(site, "instantiate_end", script=f"{line}; echo; echo and ends; exit 9")
    assert failure.endswith("| and ends")
    for text in (failure, site.conductor.log.read_text()):
        assert HIDDEN not in text
        assert not re.search(r"[A-Za-z0-9+/]{60}", text)
    assert HIDDEN not in json.dumps([site.metadata, site.error_data])


def test_a_server_that_does_not_respond_is_named(site: Site, worker: Server, node: Node) -> None:
    node.cut_off()
    failure = operate(site, "instantiate_end", within=SHORT)
    node.connect()
    assert f"{name_of(worker)}: the time limit of the operation has passed at the look at the server" in failure


@pytest.mark.parametrize(
    ("login", "shown"),
    [({"username": "nobody-here"}, "nobody-here"), ({"password": "wrong-word"}, USER)],
    ids=["user", "password"],
)
def test_a_login_that_is_refused_names_the_server_and_the_user(
    site: Site, worker: Server, login: dict[str, str], shown: str
) -> None:
    given = site.parameters
    groups = {name: {**given[name], "password": PASSWORD} for name in ("master_node", "worker_node")}
    groups["master_node"]["cluster_cp_name"] = f"{MASTERS}_CP1"
    groups["worker_node"] |= login
    failure = operate(site, "scale_start", worker, **groups, **({"ssh_key": None} if "password" in login else {}))
    assert f"{name_of(worker)} ({worker.address}): it refuses the login of {shown}: check the user" in failure
    assert "wrong-word" not in failure and PASSWORD not in failure


def test_no_secret_was_an_argument_or_is_in_a_file_that_others_can_read(site: Site, arguments: leaks.Arguments) -> None:
    secrets = [HIDDEN, PASSWORD, "secret-word", *site.key.read_text().splitlines()[1:3]]
    assert any("yes flood" in one for one in arguments.seen), "the processes of a script were seen"
    assert [one for one in arguments.seen if any(secret in one for secret in secrets)] == []
    for one in site.nodes.values():
        assert leaks.readable_by_others(one.machine.run, secrets) == []


def has_begun(node: Node) -> bool:
    return (node.machine.run("sh", "-c", "ls /run/begun 2>/dev/null || true")) != ""


def accepts_logins(node: Node) -> bool:
    try:
        return node.machine.run("systemctl", "is-active", "ssh") == "active\n"
    except RuntimeError:
        return False
