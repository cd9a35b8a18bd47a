# SPDX-License-Identifier: Apache-2.0
"""The management driver of clusters that kubespray makes, called as Tacker calls it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.lcm import hook
from k8s_cr_driver.lcm.kubespray import kubespray
from k8s_cr_driver.node_clusters.kubespray import ansible_files
from k8s_cr_driver.ssh import host_keys
from k8s_cr_driver.ssh.host import Host
from tests.cloud import openstack, stacks
from tests.node_clusters.kubespray import bed as beds
from tests.node_clusters.kubespray.bed import Bed
from tests.node_clusters.kubespray.specification import ansible, balancer, body, parameter
from tests.ssh.test_host_keys import ED25519

VIMS = {"vim1": {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}, "kubernetes_vim": {"vimType": "ETSINFV.KUBERNETES.V_1"}}


def call(operation: str, given: Any, removes: tuple[str, ...] = (), **request: Any) -> hook.Call:
    removed = [{"type": "COMPUTE", "resource": {"resourceId": one}} for one in removes]
    return hook.Call(
        operation,
        Path("/package/Scripts/kubespray.py"),
        {"additionalParams": {"k8s_cluster_installation_param": given}, **request},
        {"id": "4a1f", "vimConnectionInfo": dict(VIMS), "metadata": {}},
        {},
        {"removeResources": removed},
        Path("/package"),
    )


def failure(one: hook.Call) -> str:
    with pytest.raises(Exception) as error:
        kubespray(one)
    return hook.line(error.value)


def test_mistakes_fail_the_operation_before_anything_is_touched() -> None:
    said = failure(call("instantiate_end", body()))
    assert said.count("additionalParams.k8s_cluster_installation_param.ansible.") == 3


def test_the_parameters_are_kept_without_secrets() -> None:
    one = call("scale_start", parameter())
    kubespray(one)
    kept = one.instance["metadata"]["node_cluster"]
    assert kept["parameters"]["ansible"]["kubespray_root_path"] == "/opt/kubespray"
    assert "password" not in str(kept) and "user1" not in str(kept)


def test_a_host_key_that_nobody_knows_is_not_trusted(options_file: Path) -> None:
    said = failure(call("terminate_start", parameter(), terminationType="GRACEFUL"))
    assert "the operator's ssh_known_hosts has no host key of 198.51.100.4" in said


def test_a_forceful_terminate_goes_on_without_the_ansible_server(options_file: Path) -> None:
    one = call("terminate_start", parameter(), terminationType="FORCEFUL")
    kubespray(one)
    assert list(one.instance["vimConnectionInfo"]) == ["vim1"]


def test_an_instantiate_that_has_not_reached_the_ansible_server_can_be_rolled_back(options_file: Path) -> None:
    one = call("instantiate_rollback_end", parameter())
    kubespray(one)
    assert list(one.instance["vimConnectionInfo"]) == ["vim1"]


def test_the_rollback_of_one_that_has_reached_it_does_not_leave_its_folder_there(options_file: Path) -> None:
    one = call("instantiate_rollback_end", parameter())
    one.error_data["node_cluster"] = {"reached": True}
    assert "the operator's ssh_known_hosts has no host key of 198.51.100.4" in failure(one)


def test_the_operators_file_of_known_hosts_is_taken(options_file: Path, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"198.51.100.4 {ED25519}\n")
    options_file.write_text(f"[k8s_cr]\nssh_known_hosts = {known}\nallowed_ssh_hosts = 203.0.113.0/24\n")
    said = failure(call("terminate_start", parameter()))
    assert "198.51.100.4" in said and "ssh_known_hosts" not in said, "it is not permitted, but it is known"


@pytest.mark.parametrize("operation", ["scale_start", "scale_end", "heal_start", "modify_info_end"])
def test_an_operation_that_changes_no_node_touches_nothing(operation: str) -> None:
    one = call(operation, parameter(), removes=("w0",) if operation == "scale_end" else ())
    kubespray(one)
    assert one.instance["vimConnectionInfo"] == VIMS


MASTER, WORKERS, BALANCER = "masternode-0m000000", ("workernode-0w000000", "workernode-1w000000"), "load-balancer-0e000000"
PUBLIC = "203.0.113.30"
SERVERS = [
    stacks.Server("masterNode", 0, "0m000000-server", "10.0.0.10", "198.51.100.10"),
    stacks.Server("workerNode", 0, "0w000000-server", "10.0.1.10", "198.51.100.20"),
    stacks.Server("workerNode", 1, "1w000000-server", "10.0.1.11", "198.51.100.21"),
    stacks.Server("externalLB", 0, "0e000000-server", "10.0.2.10", public=PUBLIC),
]
"""The load balancer has a second port on a public network, as the specification has it, and no floating IP."""


def cluster_of(bed: Bed) -> dict[str, Any]:
    """Parameters whose nodes are found by their VDUs."""
    groups = {
        f"{role}_node": {"vdu_id": f"{role}Node", "ssh_cp_name": f"{role}Node_fip", "username": "admin", "password": "right"}
        for role in ("master", "worker")
    }
    keys = [bed.machines["ansible"].server.public_key]
    ports = {"ssh_cp_name": "externalLB_CP2", "nic_cp_name": "externalLB_CP1"}
    return parameter(
        **groups,
        ansible=ansible(ip_address="127.0.0.1", username="admin", password="right", host_keys=keys),
        external_lb_param=balancer(**ports, ssh_username="admin", ssh_password="right", script_path=""),
    )


def test_tackers_operations_make_a_cluster_of_the_stack_and_take_it_apart(
    options_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options_file.write_text("[k8s_cr]\nallowed_endpoints = *\nallow_http_endpoints = true\nallowed_ssh_hosts = 127.0.0.1\n")
    with openstack.serving() as cloud, beds.serving(tmp_path, ("ansible", BALANCER, MASTER, *WORKERS)) as bed:

        def host(name: str, address: str, user: str, **options: Any) -> Host:
            """All addresses of the stack lead to this host."""
            machine = bed.machines["ansible" if name.startswith("the ") else name]
            assert address in (*(one.public or one.floating for one in SERVERS), "127.0.0.1")
            return Host(name, "127.0.0.1", user, port=machine.server.port, **options)

        for module in ("node_clusters", "kubespray"):
            monkeypatch.setattr(f"k8s_cr_driver.lcm.{module}.Host", host)
        machines = dict(zip((MASTER, *WORKERS, BALANCER), SERVERS, strict=True))
        block = f"{host_keys.BEGIN}\n%s\n{host_keys.END}\n"
        consoles = {one.id: block % bed.machines[name].server.public_key for name, one in machines.items()}
        deployed = stacks.Deployed(SERVERS, consoles=consoles)
        deployed.fill(cloud)
        instance = {**deployed.record(), "vimConnectionInfo": {"vim1": {**VIMS["vim1"], **cloud.vim()}}}

        def operate(operation: str, *removes: str, **request: Any) -> hook.Call:
            one = call(operation, cluster_of(bed), removes, **request)
            return dataclasses.replace(one, instance={**instance, "metadata": {}})

        said = failure(operate("instantiate_end"))
        assert "the look at the kubeconfig" in said, "all but the VIM is there"
        assert bed.names == ["cluster.yml"]
        assert sorted(path.name for path in (bed.cluster / "nodes").iterdir()) == [MASTER, *WORKERS]
        assert "right" not in said
        configuration = bed.machines[BALANCER].file("/etc/haproxy/haproxy.cfg").read_text()
        assert f"server {MASTER} 10.0.0.10:6443" in configuration
        settings = yaml.safe_load((bed.folder() / ansible_files.SETTINGS).read_text())
        assert settings["loadbalancer_apiserver"] == {"address": "10.0.2.10", "port": 8383}
        assert {PUBLIC, "10.0.2.10"} <= {*settings["supplementary_addresses_in_ssl_keys"]}
        assert "a master cannot be replaced" in failure(operate("heal_start", "0m000000-server", vnfcInstanceId=["m"]))
        kubespray(operate("scale_start", "1w000000-server"))
        assert bed.names == ["cluster.yml", "remove-node.yml"]
        assert "the look at the kubeconfig" in failure(operate("scale_rollback_start"))
        assert bed.names == ["cluster.yml", "remove-node.yml", "playbooks/facts.yml", "scale.yml"], "both workers are recorded"
        kubespray(operate("scale_start", "1w000000-server"))
        before = bed.names
        for left in (SERVERS[:2] + SERVERS[3:], [*SERVERS[:2], replaced(SERVERS[2]), *SERVERS[3:]]):
            stacks.Deployed(left, consoles=consoles).fill(cloud)  # Heat was done when the conductor died
            kubespray(operate("scale_start", "1w000000-server"))
            assert bed.names == before
        kubespray(operate("terminate_start", terminationType="GRACEFUL"))
        assert not bed.folder().exists()


def replaced(server: stacks.Server) -> stacks.Server:
    """Another server has its port."""
    return dataclasses.replace(server, id="2w000000-server")
