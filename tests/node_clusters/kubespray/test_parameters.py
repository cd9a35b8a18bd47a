# SPDX-License-Identifier: Apache-2.0
"""The parameters of a cluster that kubespray makes: the specification's request body, and every mistake at once."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import parameters as common
from k8s_cr_driver.node_clusters.kubespray import parameters
from tests.ssh.test_host_keys import ED25519

from . import specification
from .specification import ansible, balancer, parameter


def read(given: Any, kept: dict[str, Any] | None = None) -> parameters.Kubespray:
    return parameters.read(given, kept or {}, "4a1f")


def test_the_body_of_the_specification_is_taken() -> None:
    found = read(parameter())
    assert (found.common.pod_cidr, found.common.cluster_cidr) == ("192.168.0.0/16", "10.199.187.0/24")
    assert (found.common.vim_name, found.common.api_port) == ("kubernetes_vim", 8383)
    assert found.ansible.address == "198.51.100.4"
    assert found.balancer is not None
    assert (found.balancer.nic_cp_name, found.balancer.username) == ("externalLB_instance", "ubuntu")


def test_what_the_body_leaves_to_its_reader_is_reported_at_once() -> None:
    with pytest.raises(InvalidRequest) as failure:
        read(specification.body())
    assert [line.partition("k8s_cluster_installation_param")[2] for line in str(failure.value).splitlines()] == [
        ".ansible.ip_address: must be the IP address of a server",
        ".ansible.kubespray_root_path: is missing",
        ".ansible.transferring_inventory_path: is missing",
    ]


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"ansible": None}, ".ansible: is missing; it is the server that has kubespray"),
        ({"ansible": "here"}, ".ansible: must be a mapping, not text"),
        ({"ansible": ansible(ip_adress="x")}, ".ansible.ip_adress: is not a parameter; is it ip_address?"),
        ({"ansible": ansible(ip_address="ansible.example.com")}, ".ansible.ip_address: must be the IP address of a server"),
        ({"ansible": ansible(username="a; reboot")}, ".ansible.username: must be the name of a user"),
        ({"ansible": ansible(kubespray_root_path="kubespray")}, ".ansible.kubespray_root_path: must be an absolute path"),
        ({"ansible": ansible(transferring_inventory_path="/")}, ".transferring_inventory_path: must be an absolute path"),
        ({"ansible": ansible(transferring_inventory_path="/a/../../etc")}, ".transferring_inventory_path: must be an abs"),
        ({"ansible": ansible(transferring_inventory_path="/a b; rm -rf /")}, ".transferring_inventory_path: must be an abs"),
        ({"ansible": ansible(host_keys=["ssh-ed25519 short"])}, ".ansible.host_keys: must be a list of public keys"),
        ({"ansible": ansible(older_groups="yes")}, ".ansible.older_groups: must be true or false, not text"),
        ({"ansible": ansible(skip_tags=["a b"])}, ".ansible.skip_tags: must be a list of tags"),
        ({"ansible": ansible(settings={"kube_version": "1.1"})}, ".ansible.settings: kube_version follows from kubernetes_ver"),
        ({"ansible": ansible(settings={"ansible_host": "x"})}, ".ansible.settings: ansible_host: is no variable of kubespray"),
        ({"ansible": ansible(settings=["a"])}, ".ansible.settings: must be a mapping of variables of kubespray, not a list"),
        ({"external_lb_param": {"ssh_cp_name": "x"}}, ".external_lb_param.ssh_username: is missing"),
        ({"external_lb_param": balancer(script_path="/bin/sh")}, ".external_lb_param.script_path: must be a path in the pack"),
        ({"external_lb_param": balancer(node_ports=["80"])}, ".external_lb_param.node_ports: must be a list of up to 1000 No"),
        ({"external_lb_param": balancer(node_ports=[8383])}, ".external_lb_param.node_ports: the load balancer has the API at"),
        ({"external_lb_param": None, "api_port": 6443}, ".api_port: is that of the load balancer; external_lb_param is mis"),
        ({"script_path": "Scripts/install.sh"}, ".script_path: must be empty: kubespray installs the nodes"),
    ],
)
def test_a_mistake_is_reported_with_its_place(sections: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest) as failure:
        read(parameter(**sections))
    assert problem in str(failure.value)
    assert len(str(failure.value).splitlines()) == 1


def test_a_later_request_repeats_nothing_but_its_secrets() -> None:
    kept = common.merged(parameter(ansible=ansible(host_keys=[f"{ED25519} root@ansible"])), {})
    assert all(secret not in str(kept) for secret in ("password1", "user2", "'password'", "ssh_password"))
    later = read({"ansible": {"password": "another"}}, kept)
    assert (later.ansible.password, later.ansible.username, later.ansible.host_keys) == ("another", "ansible", (ED25519,))
    assert later.common.proxy["http_proxy"] == "http://host1:port1"


def test_settings_whose_names_are_those_of_secrets_are_not_kept() -> None:
    registries = [{"url": "mirror", "registry_password": "secret-word"}]
    harmless = {"kube_token_auth": True, "kube_network_plugin": "calico"}
    kept = common.merged(parameter(settings={"gcr_token": "secret-word", "registries": registries, **harmless}), {})
    assert kept["settings"] == {**harmless, "registries": [{"url": "mirror"}]}


def test_without_a_load_balancer_there_is_none() -> None:
    assert read(parameter(external_lb_param=None)).balancer is None


def test_paths_have_no_slash_at_their_end() -> None:
    paths = {"kubespray_root_path": "/opt/kubespray/", "ansible_playbook": "/opt/v/bin/ansible-playbook"}
    found = read(parameter(ansible=ansible(**paths)))
    assert (found.ansible.root, found.ansible.program) == ("/opt/kubespray", "/opt/v/bin/ansible-playbook")


def test_the_parameters_of_kubespray_are_not_those_of_other_ways() -> None:
    with pytest.raises(InvalidRequest, match=r"\.ansible: is not a parameter"):
        common.read(parameter(), {}, "4a1f")
