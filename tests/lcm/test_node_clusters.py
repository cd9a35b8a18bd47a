# SPDX-License-Identifier: Apache-2.0
"""The management driver of clusters on servers, called as Tacker calls it, where no server is to be reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.errors import NotPermitted
from k8s_cr_driver.lcm import conf, hook
from k8s_cr_driver.package import scripts
from tests.cloud import openstack

GROUP = {"vdu_id": "masterNode", "ssh_cp_name": "masterNode_CP1", "username": "ubuntu", "password": "secret-word"}
PARAMETERS = {
    "vim_name": "blue",
    "master_node": {**GROUP, "cluster_cp_name": "vip_CP"},
    "worker_node": {**GROUP, "vdu_id": "workerNode"},
}
VIMS = {"vim1": {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}, "blue": {"vimType": "ETSINFV.KUBERNETES.V_1"}}
MGMT = Path(__file__).parents[2] / "mgmt" / "ha_masters"


def call(
    operation: str, parameters: Any = None, metadata: dict[str, Any] | None = None, removes: tuple[str, ...] = ()
) -> tuple[dict[str, Any], str]:
    params = {} if parameters is None else {"k8s_cluster_installation_param": parameters}
    removed = [{"type": "COMPUTE", "resource": {"resourceId": one}} for one in removes]
    given = {
        "operation": operation,
        "request": {"additionalParams": params},
        "vnf_instance": {"id": "4a1f", "vimConnectionInfo": dict(VIMS), "metadata": metadata or {}},
        "grant_request": {"removeResources": removed},
        "user_script_err_handling_data": {},
        "tmp_csar_dir": "/package",
    }
    return hook.respond("ha_masters", Path("/package/Scripts/ha_masters.py"), given)


def test_mistakes_fail_the_operation_before_anything_is_touched() -> None:
    _, failure = call("instantiate_end", {"master_node": {}, "worker_node": GROUP})
    first = "additionalParams.k8s_cluster_installation_param.master_node.ssh_cp_name: is missing"
    assert failure.startswith(f"ha_masters: {first}; ")
    assert failure.endswith("it is the VDU of these servers")


@pytest.mark.parametrize(
    ("operation", "options"),
    [
        ("terminate_start", {"removes": ("m0", "w0")}),
        ("instantiate_rollback_end", {}),
        ("heal_start", {"removes": ("m0", "w0")}),
    ],
    ids=["terminate", "rollback of instantiate", "heal of the whole instance"],
)
def test_a_cluster_that_goes_is_no_vim_any_more(operation: str, options: dict[str, Any]) -> None:
    returned, failure = call(operation, PARAMETERS, **options)
    assert failure == ""
    assert list(returned["vnf_instance"]["vimConnectionInfo"]) == ["vim1"]


def test_the_parameters_are_kept_without_secrets_until_the_end() -> None:
    returned, _ = call("terminate_start", PARAMETERS)
    kept = returned["vnf_instance"]["metadata"]["node_cluster"]
    assert kept["parameters"]["master_node"]["cluster_cp_name"] == "vip_CP"
    assert returned["user_script_err_handling_data"]["node_cluster"] == kept
    assert "secret-word" not in str(returned)
    returned, failure = call("terminate_end", metadata={"node_cluster": kept})
    assert failure == ""
    assert returned["vnf_instance"]["metadata"] == {}


@pytest.mark.parametrize(
    ("operation", "removes"), [("scale_start", ()), ("scale_end", ("w0",)), ("heal_start", ()), ("modify_info_end", ())]
)
def test_an_operation_that_changes_no_node_touches_nothing(operation: str, removes: tuple[str, ...]) -> None:
    returned, failure = call(operation, PARAMETERS, removes=removes)
    assert failure == ""
    assert returned["vnf_instance"]["vimConnectionInfo"] == VIMS


def test_without_an_openstack_vim_there_are_no_servers() -> None:
    given = {
        "operation": "heal_end",
        "request": {"additionalParams": {"k8s_cluster_installation_param": PARAMETERS}},
        "vnf_instance": {"id": "4a1f", "vimConnectionInfo": {}},
        "user_script_err_handling_data": {},
    }
    _, failure = hook.respond("ha_masters", Path("/package/Scripts/ha_masters.py"), given)
    assert failure == "ha_masters: the VNF instance has no VIM of an OpenStack project"


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({}, ""),
        ({"projects": "id-of-others"}, "ssh_key: the operator has the key blue for other projects"),
        ({"projects": ""}, "ssh_key: the operator has the key blue for other projects"),
        ({"keystone": "https://keystone.example.com/v3"}, "ssh_key: the operator has the key blue for another cloud"),
        ({"keystone": ""}, "ssh_key: the operator has the key blue for another cloud"),
        ({"hosts": ""}, "ssh_key: hosts of [k8s_cr_ssh_key:blue] names none"),
    ],
    ids=["its project", "another project", "no project", "another cloud", "no cloud", "no hosts"],
)
def test_a_key_of_the_operator_opens_servers_of_its_projects_only(
    options_file: Path, options: dict[str, str], refused: str
) -> None:
    """Else whoever names it, with a cloud of his own making, runs a script as root on servers of others."""
    key = options_file.parent / "blue"
    key.write_text("the key\n")
    options_file.write_text("[k8s_cr]\nallowed_endpoints = 127.0.0.1\nallow_http_endpoints = true\n")
    with openstack.serving() as cloud:
        own = {"private_key": str(key), "hosts": "10.20.0.0/16", "keystone": f"{cloud.url}/v3/", "projects": openstack.PROJECT}
        lines = [f"{name} = {value}" for name, value in {**own, **options}.items()]
        with options_file.open("a") as file:
            file.write("\n".join(["[k8s_cr_ssh_key:blue]", *lines, ""]))
        given = {
            "operation": "heal_end",
            "request": {"additionalParams": {"k8s_cluster_installation_param": {**PARAMETERS, "ssh_key": "blue"}}},
            "vnf_instance": {
                "id": "4a1f",
                "vimConnectionInfo": {"vim1": {**VIMS["vim1"], **cloud.vim()}},
                "instantiatedVnfInfo": {"metadata": {"stack_id": "s"}},
            },
            "user_script_err_handling_data": {},
        }
        _, failure = hook.respond("ha_masters", Path("/package/Scripts/ha_masters.py"), given)
    if refused:
        assert refused in failure and not cloud.seen
    else:
        assert "stacks" in failure and cloud.seen, "the stack is looked for"


def test_the_services_of_the_vim_are_judged_by_the_options_of_endpoints(options_file: Path) -> None:
    options_file.write_text("[k8s_cr]\nallow_http_endpoints = true\n")
    with openstack.serving() as cloud:
        given = {
            "operation": "heal_end",
            "request": {"additionalParams": {"k8s_cluster_installation_param": PARAMETERS}},
            "vnf_instance": {
                "id": "4a1f",
                "vimConnectionInfo": {"vim1": {**VIMS["vim1"], **cloud.vim()}},
                "instantiatedVnfInfo": {"metadata": {"stack_id": "s"}},
            },
            "user_script_err_handling_data": {},
        }
        _, failure = hook.respond("ha_masters", Path("/package/Scripts/ha_masters.py"), given)
    assert "no connection to this host is permitted" in failure and "[k8s_cr] allowed_endpoints" in failure


@pytest.mark.parametrize(
    ("listed", "address", "permitted"),
    [
        ("", "8.8.8.8", True),
        ("", "10.20.0.5", False),
        ("", "127.0.0.1", False),
        ("10.20.0.0/16", "10.20.0.5", True),
        ("10.20.0.0/16", "8.8.8.8", False),
    ],
)
def test_servers_on_private_addresses_have_to_be_listed(options_file: Path, listed: str, address: str, permitted: bool) -> None:
    """The cloud that says where a server is may be one of a tenant's making."""
    options_file.write_text(f"[k8s_cr]\nallowed_ssh_hosts = {listed}\n")
    rules = conf.ssh_rules(conf.of_conductor())
    if permitted:
        assert rules(address, [address]) == [address]
    else:
        with pytest.raises(NotPermitted, match=r"\[k8s_cr\] allowed_ssh_hosts"):
            rules(address, [address])


def test_the_script_that_stands_in_mgmt_is_the_one_that_is_added() -> None:
    assert (MGMT / "ha_masters.py").read_text() == scripts.text("ha_masters")


def test_the_sample_names_the_operations_as_the_readme_does() -> None:
    fragment = yaml.safe_load((MGMT / "README.md").read_text().split("```yaml\n")[1].split("```")[0])
    sample = MGMT.parents[1] / "sample_packages" / "ha_masters" / "Definitions" / "ha_masters.yaml"
    content = yaml.safe_load(sample.read_text())
    named = fragment["topology_template"]["node_templates"]["VNF"]["interfaces"]["Vnflcm"]
    assert content["topology_template"]["node_templates"]["VNF"]["interfaces"]["Vnflcm"].keys() == named.keys()
