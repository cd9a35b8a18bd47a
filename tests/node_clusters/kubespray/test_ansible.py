# SPDX-License-Identifier: Apache-2.0
"""What Ansible reads, and what is read of its results."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory
from k8s_cr_driver.node_clusters.kubespray import ansible_files, parameters, playbook
from k8s_cr_driver.ssh.host import Host
from tests.node_clusters.clusters import MASTERS, WORKERS
from tests.ssh.test_host_keys import ED25519

from .specification import ansible, balancer, parameter

INVENTORY = Inventory((*MASTERS, *WORKERS), Endpoint("10.0.0.200", "198.51.100.200", 8383))


def kubespray(**sections: Any) -> parameters.Kubespray:
    return parameters.read(parameter(**sections), {}, "4a1f")


def contents(**sections: Any) -> dict[str, str]:
    """By the names of the files."""
    reach = {node.name: Host(node.name, node.ssh, "ubuntu", trusted=(ED25519,)) for node in INVENTORY.nodes}
    files = ansible_files.files(kubespray(**sections), "4a1f", INVENTORY, reach)
    return {file.path.removeprefix("/opt/kubespray/inventory/k8s-cr-4a1f/"): file.content for file in files}


def test_the_inventory_is_that_of_todays_kubespray() -> None:
    found = yaml.safe_load(contents()["hosts.yaml"])["all"]
    assert found["hosts"]["master-m1"] == {
        "ansible_host": "198.51.100.11",
        "ip": "10.0.0.11",
        "access_ip": "10.0.0.11",
        "ansible_user": "ubuntu",
        "ansible_password": "{{ k8s_cr_password_of_masters }}",
        "etcd_member_name": "etcd2",
    }
    assert "etcd_member_name" not in found["hosts"]["worker-w0"]
    groups = {name: sorted(group.get("hosts", group.get("children"))) for name, group in found["children"].items()}
    masters = [node.name for node in MASTERS]
    assert groups == {
        "kube_control_plane": masters,
        "etcd": masters,
        "kube_node": ["worker-w0", "worker-w1"],
        "calico_rr": [],
        "k8s_cluster": ["calico_rr", "kube_control_plane", "kube_node"],
    }


def test_older_names_of_groups_are_an_option() -> None:
    found = yaml.safe_load(contents(ansible=ansible(older_groups=True))["hosts.yaml"])["all"]["children"]
    assert sorted(found) == ["calico-rr", "etcd", "k8s-cluster", "kube-node", "kube_control_plane"]


def test_the_settings_follow_from_the_parameters_and_from_variables_of_the_request() -> None:
    found = yaml.safe_load(contents(ansible=ansible(settings={"kube_network_plugin": "cni"}))["group_vars/all/k8s-cr.yml"])
    assert found["kube_network_plugin"] == "cni"
    assert (found["kube_pods_subnet"], found["kube_service_addresses"]) == ("192.168.0.0/16", "10.199.187.0/24")
    assert found["loadbalancer_apiserver"] == {"address": "10.0.0.200", "port": 8383}
    assert {"10.0.0.200", "198.51.100.200", "198.51.100.10"} <= set(found["supplementary_addresses_in_ssl_keys"])
    assert found["https_proxy"] == "https://user2:password2@host2:port2", "not that of http"
    assert {"10.0.0.200", "192.168.0.0/16", "10.10.0.0/24"} <= set(found["no_proxy"].split(","))


def test_without_a_load_balancer_kubespray_has_its_own_way() -> None:
    assert "loadbalancer_apiserver" not in yaml.safe_load(contents(external_lb_param=None)["group_vars/all/k8s-cr.yml"])


def test_ansible_trusts_the_pinned_host_keys_and_shares_no_facts() -> None:
    found = contents()
    assert found["known_hosts"].splitlines()[0] == f"198.51.100.10 {ED25519}"
    folder = "/opt/kubespray/inventory/k8s-cr-4a1f"
    lines = found["ansible.cfg"].splitlines()
    assert "host_key_checking = True" in lines and f"fact_caching_connection = {folder}/facts" in lines
    [options] = [line for line in lines if line.startswith("ssh_args")]
    assert f"-o UserKnownHostsFile={folder}/known_hosts" in options and "-o StrictHostKeyChecking=yes" in options


def test_a_certificate_authority_is_one_in_known_hosts() -> None:
    reach = {node.name: Host(node.name, node.ssh, "ubuntu", authorities=(ED25519,)) for node in INVENTORY.nodes}
    files = ansible_files.files(kubespray(), "4a1f", INVENTORY, reach)
    [known] = [file.content for file in files if file.path.endswith("known_hosts")]
    assert known.splitlines()[0] == f"@cert-authority 198.51.100.10 {ED25519}"


@pytest.mark.parametrize("password", ["{{ lookup('pipe', 'id') }}", 'a "quoted" \\ one', "plain"])
def test_passwords_are_no_templates_and_stand_in_no_file_of_the_inventory(password: str) -> None:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))  # type: ignore[arg-type]
    group = {**parameter()["master_node"], "password": password}
    found = kubespray(master_node=group)
    loaded = yaml.load(ansible_files.secrets(found), Loader)
    assert loaded == {"k8s_cr_password_of_masters": password, "k8s_cr_password_of_workers": "ubuntu"}
    assert ansible_files.secrets(found).startswith("k8s_cr_password_of_masters: !unsafe ")


def test_a_key_on_the_ansible_server_needs_no_password() -> None:
    groups = {name: {**parameter()[name], "password": ""} for name in ("master_node", "worker_node")}
    sections = {**groups, "ansible": ansible(node_key_path="/home/ansible/.ssh/nodes")}
    assert ansible_files.secrets(kubespray(**sections)) == ""
    host = yaml.safe_load(contents(**sections)["hosts.yaml"])["all"]["hosts"]["worker-w0"]
    assert host["ansible_ssh_private_key_file"] == "/home/ansible/.ssh/nodes" and "ansible_password" not in host


def test_parameters_are_arguments_and_never_a_line_for_a_shell() -> None:
    given = kubespray(ansible=ansible(skip_tags=["kube-proxy"]), external_lb_param=balancer()).ansible
    command = playbook.command(playbook.Playbook("scale.yml", limit=("w-1",)), given, "4a1f", "d", "", (), 60)
    assert command.argv[-3:] == ("--limit=w-1", "--skip-tags", "kube-proxy")
    assert not command.as_root


def event(kind: str, host: str, result: Any) -> str:
    return json.dumps({"_event": f"v2_runner_on_{kind}", "task": {"name": f"task of {kind}"}, "hosts": {host: result}})


def stats(**hosts: dict[str, int]) -> str:
    return json.dumps({"_event": "v2_playbook_on_stats", "stats": hosts})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], ""),
        (["[WARNING]: x", "{broken", "[]", "3"], ""),
        ([event("failed", "a", {"msg": "no"})], "a: task of failed: no"),
        ([event("failed", "a", {"msg": "ignored"}), stats(a={"ignored": 1, "ok": 4})], ""),
        (
            [event("failed", "a", {"msg": "ignored"}), event("failed", "a", {"msg": "last"}), stats(a={"failures": 1})],
            "a: task of failed: last",
        ),
        ([event("unreachable", "a", {"msg": "Host key verification failed."})], "a: task of unreachable: Host key verif"),
        ([event("failed", "a", {"msg": "x", "stderr": "token: abcdefabcdefabcdef\nb"})], "a: task of failed: x / token: [remo"),
        ([event("unreachable", "a", {"msg": "@@@@\n@  WARNING!   @\n@@@@\nSee"})], "a: task of unreachable: WARNING! / See"),
        ([event("failed", "a", None)], "a: task of failed: it says nothing"),
        ([event("failed", f"h{n}", {"msg": "no"}) for n in range(9)], "h0: task of failed: no | h1: task of failed: no"),
    ],
)
def test_failures_are_the_last_of_each_host_that_has_failed(lines: list[str], said: str) -> None:
    found = playbook.failures(playbook.events("\n".join(lines)))
    assert found.startswith(said) and bool(found) == bool(said)
    assert "abcdefabcdef" not in found and found.count("task of") <= playbook.SHOWN


def test_the_last_task_is_named_where_a_playbook_did_not_end() -> None:
    begun = json.dumps({"_event": "v2_playbook_on_task_start", "task": {"name": "etcd : Wait"}, "hosts": {}})
    assert playbook.last_task(playbook.events(f"{event('ok', 'a', {})}\n{begun}\n")) == "etcd : Wait"
    assert playbook.last_task([]) == ""


def test_a_recap_counts_what_was_changed() -> None:
    found = playbook.recap(playbook.events(stats(b={"ok": 3, "changed": 1, "failures": 0}, a={"ok": 2})))
    assert found == "a: ok 2; b: ok 3, changed 1"
