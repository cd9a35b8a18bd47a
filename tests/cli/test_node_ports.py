# SPDX-License-Identifier: Apache-2.0
"""`validate` of a CNF that exposes its NodePorts on an external load balancer: the package of the README in mgmt/node_ports."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.packages import changed_vnfd, write_package
from tests.cli.tool import Tool

README = Path(__file__).parents[2] / "mgmt" / "node_ports" / "README.md"
NOTHING = "No Service of the package has type NodePort and a port of TCP, so node_ports exposes nothing"
UDP = "Service web: HAProxy cannot balance UDP, so this port is not exposed"
ADDRESS = {"ip_address": "198.51.100.200", "ssh_username": "ubuntu"}


def service(kind: str = "NodePort", **port: Any) -> dict[str, Any]:
    spec = {"type": kind, "selector": {"app": "web"}, "ports": [{"port": 80, **port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def package(folder: Path, *, without: str = "", more: str = "", of: dict[str, Any] | None = None) -> Path:
    """With the definitions of the README; `without` an operation, or with one `more`."""
    root = write_package(folder / "package", [of or service(nodePort=30080)])
    [block] = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    own = yaml.safe_load(textwrap.dedent(block))
    vnf = own["topology_template"]["node_templates"]["VNF"]
    named = vnf["interfaces"]["Vnflcm"]
    named.pop(without, None)
    if more:
        named[more] = {"implementation": "node-ports"}
    with changed_vnfd(root) as content:
        content["node_types"]["sample.VNF"]["interfaces"] = own["node_types"]["sample.VNF"]["interfaces"]
        content["topology_template"]["node_templates"]["VNF"] |= {name: vnf[name] for name in ("interfaces", "artifacts")}
    return root


def asked(tool: Tool, root: Path, code: int = 0, **given: Any) -> tuple[list[str], list[str]]:
    """What is found with a request that has this load balancer."""
    file = root.parent / "request.json"
    file.write_text(json.dumps({"additionalParams": {"lcm-kubernetes-external-lb": {"external_lb_param": given}}}))
    return tool.judged(root, "--request", str(file), code=code)


def test_the_package_of_the_readme_and_a_request_for_it_have_no_mistake(tool: Tool, tmp_path: Path) -> None:
    assert asked(tool, package(tmp_path), **ADDRESS) == ([], [])


def test_an_operation_at_which_the_driver_has_nothing_to_do_is_a_mistake(tool: Tool, tmp_path: Path) -> None:
    problems, _ = tool.judged(package(tmp_path, more="heal_start"), code=1)
    assert problems == ["Flavour simple: heal_start names node_ports, which has nothing to do there; remove it"]


@pytest.mark.parametrize(
    ("operation", "consequence"),
    [("scale_end", "the load balancer keeps the NodePorts of be"), ("terminate_start", "the NodePorts stay on the load")],
)
def test_an_operation_that_is_left_out_is_reported(tool: Tool, tmp_path: Path, operation: str, consequence: str) -> None:
    [warning] = tool.judged(package(tmp_path, without=operation))[1]
    assert warning.startswith(f"Flavour simple: {operation} does not name node_ports, so {consequence}")


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (service("ClusterIP"), [NOTHING]),
        (service(nodePort=30080), []),
        (service(), []),
        (service(nodePort=30080, protocol="UDP"), [UDP, NOTHING]),
    ],
    ids=["of the cluster", "TCP", "chosen by the cluster", "UDP"],
)
def test_services_that_cannot_be_exposed_are_reported(
    tool: Tool, tmp_path: Path, of: dict[str, Any], expected: list[str]
) -> None:
    assert tool.judged(package(tmp_path, of=of))[1] == expected


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "ip_address, ssh_username: is missing; or give load_balancer"),
        ({"load_balancer": "blue"}, ""),
        ({**ADDRESS, "ip_address": "0.0.0.0"}, "ip_address: must be the IP address of a server"),
        ({**ADDRESS, "ssh_pasword": "x"}, "ssh_pasword: is not a parameter; is it ssh_password?"),
    ],
)
def test_the_request_is_checked(tool: Tool, tmp_path: Path, given: dict[str, Any], problem: str) -> None:
    problems, _ = asked(tool, package(tmp_path), code=int(bool(problem)), **given)
    assert len(problems) == bool(problem) and all(problem in one for one in problems), problems
