# SPDX-License-Identifier: Apache-2.0
"""A cluster of kubespray itself, offline; the tests share it, in this order. Most are those of the stand-in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest

from ..conftest import Summary
from ..testbed import nodes
from . import kubespray_itself
from . import test_kubespray as usual
from .ansible_server import AnsibleServer
from .site import ITSELF, VIM, WORKERS, Site

SITE = partial(Site, driver="kubespray", base=ITSELF, image=nodes.for_kubespray)


@pytest.fixture(scope="module", autouse=True)
def ansible(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnsibleServer]:
    """With the servers: a load balancer, a master, a worker, and the Ansible server."""
    with kubespray_itself.served(tmp_path_factory.mktemp("files")) as kubespray, usual.booted(site, kubespray) as server:
        yield server


def test_a_cluster_is_made_though_the_conductor_dies(site: Site, ansible: AnsibleServer, summary: Summary) -> None:
    started = time.monotonic()
    usual.leave_a_dead_run(site, ansible)
    assert usual.instantiate_after_a_death(site, ansible).failure == ""
    assert ansible.runs() == ["cluster.yml"]
    assert site.ready() == site.names()
    assert site.asked_by_vim("/api/v1/namespaces") == 200
    assert site.vims[VIM]["interfaceInfo"]["endpoint"] == usual.endpoint_of(site)
    summary(f"cluster.yml {time.monotonic() - started:.0f} s")


test_a_second_run_runs_no_playbook = usual.test_a_second_run_runs_no_playbook
test_node_ports_of_the_request_are_exposed_and_withdrawn = usual.test_node_ports_of_the_request_are_exposed_and_withdrawn


def test_a_worker_joins(site: Site, ansible: AnsibleServer, summary: Summary) -> None:
    before = ansible.runs()
    usual.scale_out(site, site.add(WORKERS, 1), summary)
    assert ansible.runs() == [*before, "playbooks/facts.yml", "scale.yml"]


test_a_worker_leaves = usual.test_a_worker_leaves
test_a_dead_worker_is_replaced = usual.test_a_dead_worker_is_replaced


def test_a_terminate_takes_the_folder_of_the_instance(site: Site, ansible: AnsibleServer) -> None:
    assert site.operate("terminate_start").failure == ""
    assert ansible.folders() == set()
