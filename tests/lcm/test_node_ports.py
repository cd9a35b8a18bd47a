# SPDX-License-Identifier: Apache-2.0
"""The management driver of a CNF whose NodePorts stand on an external load balancer, called as Tacker calls it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.lcm import hook
from k8s_cr_driver.lcm.node_ports import node_ports
from k8s_cr_driver.ssh.host import Host
from tests.fake_api import FakeApi
from tests.instance import BLUE
from tests.node_clusters.kubespray import bed as beds
from tests.node_clusters.kubespray.bed import BALANCER, Machine

PROJECT = "0f6f3a2c5a8e4ac9b1f6a0f7d2f6c9aa"
NAMED = {"load_balancer": "blue"}


def service(name: str, *ports: tuple[str, int], kind: str = "NodePort", instance: str = BLUE) -> dict[str, Any]:
    listed = [{"name": f"p{port}", "port": 80, "protocol": protocol, "nodePort": port} for protocol, port in ports]
    metadata = {"name": name, "namespace": "default", "labels": {"tacker_vnf_instance_id": instance}}
    spec = {"type": kind, "clusterIP": "10.96.0.9", "ports": listed}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


class Conductor:
    """Calls the driver; what it keeps in the instance is there at the next call."""

    def __init__(self, api: FakeApi, options_file: Path) -> None:
        self.vim = {"interfaceInfo": {"endpoint": api.url, "ssl_ca_cert": api.ca_cert}, "accessInfo": {}}
        self.options_file = options_file
        self.instance: dict[str, Any] = {}
        self.record: dict[str, Any] = {"inventory": {"namespaces": ["default"]}, "project": PROJECT}

    def define(self, **options: str) -> None:
        """The operator defines the load balancer `blue`."""
        key = self.options_file.parent / "blue"
        key.write_text("a key\n")
        given = {"address": "127.0.0.1", "username": "admin", "private_key": str(key), "projects": PROJECT, **options}
        lines = [f"{name} = {value}" for name, value in given.items()]
        with self.options_file.open("a") as file:
            file.write("\n".join(["[k8s_cr_load_balancer:blue]", *lines, ""]))

    def run(self, operation: str, given: Any = None, failing: bool = False, of_failed: dict[str, Any] | None = None) -> str:
        section = {} if given is None else {"lcm-kubernetes-external-lb": {"external_lb_param": given}}
        instance = {
            "id": BLUE,
            "vimConnectionInfo": {"vim1": self.vim},
            "instantiatedVnfInfo": {"metadata": {"k8s_cr": self.record}},
            "metadata": self.instance,
        }
        request, script = {"additionalParams": section}, Path("/package/Scripts/node_ports.py")
        call = hook.Call(operation, script, request, instance, of_failed or {})
        self.error_data = call.error_data
        if failing:
            with pytest.raises(Exception) as error:
                node_ports(call)
            return hook.line(error.value)
        node_ports(call)
        self.instance = call.instance["metadata"]
        return ""


@pytest.fixture
def balancer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with beds.serving(tmp_path / "bed", ("ansible", BALANCER.name)) as bed:
        machine = bed.machines[BALANCER.name]
        known = machine.host("x")

        def host(name: str, address: str, user: str, **options: Any) -> Host:
            """Its port, and the key that it takes."""
            given = {**options, "private_key": known.private_key if options.get("private_key") else ""}
            return Host(name, address, user, port=machine.server.port, **given)

        monkeypatch.setattr("k8s_cr_driver.lcm.node_ports.Host", host)
        yield machine


@pytest.fixture
def conductor(tls_api: FakeApi, options_file: Path, balancer: Machine) -> Conductor:
    known = options_file.parent / "known_hosts"
    known.write_text(f"127.0.0.1 {balancer.server.public_key}\n")
    options_file.write_text(f"[k8s_cr]\nallowed_endpoints = *\nallowed_ssh_hosts = 127.0.0.1\nssh_known_hosts = {known}\n")
    return Conductor(tls_api, options_file)


def ports(machine: Machine) -> list[str]:
    """Those that HAProxy has."""
    text = machine.file("/etc/haproxy/haproxy.cfg").read_text()
    return [line.rpartition(":")[2] for line in text.splitlines() if line.startswith("  bind *")]


def test_tcp_node_ports_of_the_instance_are_exposed_and_withdrawn(
    conductor: Conductor, tls_api: FakeApi, balancer: Machine
) -> None:
    conductor.define()
    tls_api.put(service("web", ("TCP", 30080), ("UDP", 30081), ("TCP", 22)))
    tls_api.put(service("inner", ("TCP", 30082), kind="ClusterIP"))
    tls_api.put(service("others", ("TCP", 30083), instance="other"))
    conductor.run("instantiate_end", NAMED)
    assert ports(balancer) == ["30080"]
    tls_api.put(service("more", ("TCP", 30084)))
    conductor.run("scale_end")
    assert ports(balancer) == ["30080", "30084"]
    conductor.run("terminate_start")
    assert ports(balancer) == []
    assert conductor.instance == {}


def test_the_project_is_not_what_a_user_has_written_into_the_metadata(conductor: Conductor, tls_api: FakeApi) -> None:
    """Of an instance without a record, as another driver makes it, no project is known."""
    conductor.define()
    tls_api.put(service("web", ("TCP", 30080)))
    conductor.record = {}
    conductor.instance = {"node_ports": {"project": PROJECT, "settings": NAMED}}
    assert "the operator has blue for other projects" in conductor.run("heal_end", failing=True)


def test_a_cnf_does_not_take_the_whole_load_balancer(conductor: Conductor, tls_api: FakeApi, balancer: Machine) -> None:
    """Whose cluster may be one of its own making, and lists what it likes."""
    conductor.define()
    tls_api.put(service("web", *(("TCP", port) for port in range(30000, 31001))))
    assert "have 1001 NodePorts; a load balancer takes up to 1000" in conductor.run("instantiate_end", NAMED, failing=True)
    assert balancer.server.logins == 0


def test_another_load_balancer_is_refused_while_one_has_ports(
    conductor: Conductor, tls_api: FakeApi, balancer: Machine
) -> None:
    """They would stay there, and nobody else could have them."""
    conductor.define()
    tls_api.put(service("web", ("TCP", 30080)))
    conductor.run("instantiate_end", NAMED)
    by_itself = {"ip_address": "127.0.0.1", "ssh_username": "admin", "ssh_password": "right"}
    for other in ({"load_balancer": "red"}, by_itself):
        assert "the load balancer has NodePorts of the instance, and stays" in conductor.run("heal_end", other, failing=True)
    assert ports(balancer) == ["30080"]


def test_a_second_run_reloads_nothing(conductor: Conductor, tls_api: FakeApi, balancer: Machine) -> None:
    conductor.define()
    tls_api.put(service("web", ("TCP", 30080)))
    conductor.run("instantiate_end", NAMED)
    before = balancer.log
    conductor.run("heal_end")
    assert balancer.log == before


def test_a_request_may_log_in_by_itself_and_its_password_is_not_kept(
    conductor: Conductor, tls_api: FakeApi, balancer: Machine
) -> None:
    tls_api.put(service("web", ("TCP", 30080)))
    given = {"ip_address": "127.0.0.1", "ssh_username": "admin", "ssh_password": "right"}
    conductor.run("instantiate_end", given)
    assert ports(balancer) == ["30080"]
    assert "right" not in str(conductor.instance)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (NAMED, {"projects": "others"}, "load_balancer: the operator has blue for other projects"),
        (NAMED, {"projects": ""}, "load_balancer: the operator has blue for other projects"),
        ({"load_balancer": "red"}, {}, "load_balancer: the conductor has no group [k8s_cr_load_balancer:red]"),
        ({}, {}, "ip_address, ssh_username: is missing; or give load_balancer"),
        ({"ip_address": "x"}, {}, ".ip_address: must be the IP address of a server"),
        ("here", {}, "must be a mapping, not text"),
        ({"ip_address": "203.0.113.9", "ssh_username": "a"}, {}, "ssh_known_hosts has no host key of 203.0.113.9"),
    ],
)
def test_what_is_wrong_with_a_request(conductor: Conductor, given: Any, options: dict[str, str], said: str) -> None:
    conductor.define(**options)
    assert said in conductor.run("instantiate_end", given, failing=True)


def test_the_rollback_of_an_instantiate_withdraws_though_nothing_is_recorded(
    conductor: Conductor, tls_api: FakeApi, balancer: Machine
) -> None:
    """Tacker stores what the script of the failed operation has kept, and no instance."""
    conductor.define()
    tls_api.put(service("web", ("TCP", 30080)))
    conductor.run("instantiate_end", NAMED)
    conductor.instance, conductor.record = {}, {}
    conductor.run("instantiate_rollback_end", of_failed=conductor.error_data)
    assert ports(balancer) == []


def test_what_was_never_exposed_is_not_withdrawn(conductor: Conductor, balancer: Machine) -> None:
    conductor.run("instantiate_rollback_end")
    assert balancer.server.logins == 0


def test_an_instantiate_that_was_refused_can_be_rolled_back(conductor: Conductor) -> None:
    """The request is the same, and so are its mistakes."""
    assert "is not a parameter" in conductor.run("instantiate_end", {"port": 1}, failing=True)
    conductor.run("instantiate_rollback_end", {"port": 1})


def test_an_operation_without_a_change_of_services_is_no_place_for_it(conductor: Conductor) -> None:
    assert "has nothing to do there" in conductor.run("heal_start", failing=True)
