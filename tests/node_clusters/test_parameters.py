# SPDX-License-Identifier: Apache-2.0
"""The parameters of a cluster: the request bodies of the specifications, and every mistake at once."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import parameters

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAgs5p4uAO+qHYCX8uc7+QjKp8SDn5RvD+pyirNCDlqt"
GROUP = {"vdu_id": "masterNode", "ssh_cp_name": "masterNode_CP1", "username": "ubuntu", "password": "secret-word"}
GIVEN: dict[str, Any] = {
    "script_path": "Scripts/install.sh",
    "master_node": {**GROUP, "cluster_cp_name": "vip_CP"},
    "worker_node": {**GROUP, "vdu_id": "workerNode"},
}


def read(given: Any, kept: dict[str, Any] | None = None) -> parameters.Parameters:
    return parameters.read(given, kept or {}, "4a1f")


def with_change(path: str, value: Any) -> dict[str, Any]:
    """GIVEN with another value at `path`; None removes it."""
    changed = copy.deepcopy(GIVEN)
    *above, last = path.split(".")
    owner = changed
    for step in above:
        owner = owner.setdefault(step, {})
    if value is None:
        owner.pop(last, None)
    else:
        owner[last] = value
    return changed


def test_what_is_not_given_has_the_defaults_of_the_specifications() -> None:
    found = read(GIVEN)
    assert found.vim_name == "kubernetes_vim_4a1f"
    assert (found.pod_cidr, found.cluster_cidr) == ("192.168.0.0/16", "10.96.0.0/12")
    assert found.masters.nic_cp_name == "masterNode_CP1"
    assert found.drain_timeout == 300


@pytest.mark.parametrize(
    ("path", "value", "attribute", "expected"),
    [
        ("master_node.pod_cidr", "192.168.3.0/16", "pod_cidr", "192.168.0.0/16"),
        ("script_path", "", "script_path", ""),
    ],
)
def test_values_in_the_request_bodies_of_the_specifications_are_taken(
    path: str, value: str, attribute: str, expected: str
) -> None:
    assert getattr(read(with_change(path, value)), attribute) == expected


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("script_path", "/etc/passwd", ".script_path: must be a path in the package"),
        ("script_path", "../../etc/passwd", ".script_path: must be a path in the package"),
        ("manifests", "one.yaml", ".manifests: must be a list of paths in the package"),
        ("manifests", ["one.yaml"] * 101, ".manifests: must be a list of paths in the package, of 100 at most"),
        ("worker_node.vdu_id", "masterNode", ".worker_node.vdu_id: is that of master_node"),
        ("master_node.cluster_cp_name", None, ".master_node.cluster_cp_name: is missing"),
        ("master_node.pod_cidr", "10.0.0.0", ".master_node.pod_cidr: must be a network"),
        ("master_node.username", "root; reboot", ".master_node.username: must be the name of a user"),
        ("master_node.vdu_id", None, ".master_node.vdu_id: is missing"),
        ("worker_node", "all", ".worker_node: must be a mapping, not text"),
        ("worker_node.ssh_cp_nam", "x", ".worker_node.ssh_cp_nam: is not a parameter; is it ssh_cp_name?"),
        ("ssh_host_keys", ["root@one"], ".ssh_host_keys: must be a list of public keys of SSH"),
        ("ssh_host_authorities", ED25519, ".ssh_host_authorities: must be a list of public keys"),
        ("vim_cloud", "../etc", ".vim_cloud: must be a name"),
        ("vim_nam", "x", ".vim_nam: is not a parameter; is it vim_name?"),
        ("kubernetes_version", "latest", ".kubernetes_version: must be a version"),
        ("api_port", 6443, ".api_port: 6443 is taken by another program where HAProxy listens; choose another"),
        ("master_node.cluster_cidr", "192.168.128.0/20", ".cluster_cidr: 192.168.128.0/20, the network of Services, overlaps"),
        ("master_node.pod_cidr", "10.100.0.0/16", ".master_node.cluster_cidr: 10.96.0.0/12, the network of Services, overlaps"),
        ("master_node.pod_cidr", "fd00::/48", "and pod_cidr fd00::/48 must be both of IPv4, or both of IPv6"),
        ("api_port", 0, ".api_port: must be an integer from 1 to 65535"),
        ("drain_timeout", True, ".drain_timeout: must be an integer"),
        ("proxy", {"ftp_proxy": "x"}, ".proxy.ftp_proxy: is not a parameter"),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_without_secrets(path: str, value: Any, problem: str) -> None:
    with pytest.raises(InvalidRequest) as failure:
        read(with_change(path, value))
    assert str(failure.value).startswith("additionalParams.k8s_cluster_installation_param.")
    assert problem in str(failure.value)
    assert "secret-word" not in str(failure.value)


@pytest.mark.parametrize(
    "given",
    [
        with_change("master_node.cluster_cp_name", "masterNode_CP1"),
        {**GIVEN, "external_lb_param": {"vdu_id": "lb", "ssh_cp_name": "lb_CP1", "ssh_username": "ubuntu"}},
    ],
    ids=["API at the port of the only master", "load balancers outside the masters"],
)
def test_the_port_of_api_servers_is_free_where_haproxy_is_on_no_master(given: dict[str, Any]) -> None:
    assert read({**given, "api_port": 6443}).api_port == 6443


def test_a_cluster_that_exists_is_not_refused_for_its_networks() -> None:
    kept = parameters.merged(with_change("master_node.pod_cidr", "10.100.0.0/16"), {})
    assert read({}, kept).pod_cidr == "10.100.0.0/16"


def test_a_request_without_the_parameter_lacks_it_and_not_each_of_its_fields() -> None:
    with pytest.raises(InvalidRequest, match=r"^additionalParams.k8s_cluster_installation_param: is missing; it says of which"):
        read({})


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(InvalidRequest) as failure:
        read({"master_node": {}, "worker_node": {}, "api_port": "x"})
    assert len(str(failure.value).splitlines()) == 8


def test_a_later_request_repeats_nothing_but_its_secrets() -> None:
    kept = parameters.merged(GIVEN, {})
    assert "secret-word" not in str(kept)
    later = read({"worker_node": {"password": "another"}}, kept)
    assert (later.workers.password, later.workers.username, later.masters.password) == ("another", "ubuntu", "")
    assert later.cluster_cp_name == "vip_CP"


def test_the_name_of_the_vim_stays() -> None:
    """Nobody would remove the VIM of the former name."""
    kept = parameters.merged({**GIVEN, "vim_name": "blue"}, {})
    assert read({}, kept).vim_name == read({"vim_name": "blue"}, kept).vim_name == "blue"
    for given, before in (({"vim_name": "red"}, kept), ({"vim_name": "red"}, parameters.merged(GIVEN, {}))):
        with pytest.raises(InvalidRequest, match=r"vim_name: stays what it was"):
            read(given, before)


@pytest.mark.parametrize(
    "given", ["http://me:a/b@proxy:3128", "me:secret@proxy:3128", "HTTPS://me:p@ss@proxy:3128", "http://proxy:3128"]
)
def test_credentials_of_a_proxy_are_not_kept(given: str) -> None:
    kept = parameters.merged({**GIVEN, "proxy": {"http_proxy": given}}, {})["proxy"]["http_proxy"]
    assert kept.rpartition("://")[2] == "proxy:3128"


def test_secrets_of_settings_are_not_kept() -> None:
    settings = {"api_token": "w-1", "auth": [{"password": "w-2"}], "repo": "https://me:w-3@mirror/f", "image": "r/i@sha256:1"}
    kept = parameters.merged({**GIVEN, "ansible": {}, "settings": settings}, {})["settings"]
    assert kept == {"auth": [{}], "repo": "https://mirror/f", "image": "r/i@sha256:1"}
    assert set(parameters.secrets_of(settings)) == {"w-1", "w-2", "me:w-3", "w-3"}


def test_host_keys_are_read_without_their_comments() -> None:
    found = read({**GIVEN, "ssh_host_keys": [f"{ED25519} root@one"], "ssh_host_authorities": [ED25519]})
    assert (found.ssh_host_keys, found.ssh_host_authorities) == ((ED25519,), (ED25519,))


@pytest.mark.parametrize(
    ("proxy", "secrets"),
    [
        ({}, set()),
        ({"http_proxy": "http://proxy.example:3128"}, set()),
        ({"http_proxy": "http://a:word-1@p:1", "https_proxy": "http://b:w-2@p:1"}, {"a:word-1", "word-1", "b:w-2", "w-2"}),
    ],
)
def test_the_credentials_of_a_proxy_are_secrets_of_scripts(proxy: dict[str, str], secrets: set[str]) -> None:
    groups = {name: {**GIVEN[name], "password": f"word-of-{name}"} for name in ("master_node", "worker_node")}
    found = read({**GIVEN, **groups, "proxy": proxy})
    assert set(found.secrets) == secrets | {"word-of-master_node", "word-of-worker_node"}
    assert not any(one in repr(found) for one in found.secrets)
