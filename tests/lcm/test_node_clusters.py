# SPDX-License-Identifier: Apache-2.0
"""The management driver of clusters on servers, called as Tacker calls it, where no server is to be reached."""

from __future__ import annotations

import configparser
import importlib.metadata
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.credentials.tacker import Vim
from k8s_cr_driver.errors import NotPermitted
from k8s_cr_driver.lcm import conf, hook
from k8s_cr_driver.lcm.workers import worker_of
from k8s_cr_driver.package import scripts
from tests.cloud import openstack
from tests.credentials import openstack as tacker_api

GROUP = {"vdu_id": "masterNode", "ssh_cp_name": "masterNode_CP1", "username": "ubuntu", "password": "secret-word"}
PARAMETERS = {
    "vim_name": "blue",
    "master_node": {**GROUP, "cluster_cp_name": "vip_CP"},
    "worker_node": {**GROUP, "vdu_id": "workerNode"},
}
VIMS = {"vim1": {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}, "blue": {"vimType": "ETSINFV.KUBERNETES.V_1"}}
MGMT = Path(__file__).parents[2] / "mgmt"


def call(
    operation: str,
    parameters: Any = None,
    metadata: dict[str, Any] | None = None,
    removes: tuple[str, ...] = (),
    vims: dict[str, Any] = VIMS,
    others: dict[str, Any] | None = None,
    adds: tuple[str, ...] = (),
) -> tuple[dict[str, Any], str]:
    """`removes` are servers, `adds` VDUs, `others` more of additionalParams."""
    params = {**({} if parameters is None else {"k8s_cluster_installation_param": parameters}), **(others or {})}
    removed = [{"type": "COMPUTE", "resource": {"resourceId": one}} for one in removes]
    added = [{"type": "COMPUTE", "resourceTemplateId": one} for one in adds]
    info = {"metadata": {"stack_id": "s"}}
    instance = {"id": "4a1f", "vimConnectionInfo": dict(vims), "metadata": metadata or {}, "instantiatedVnfInfo": info}
    given = {
        "operation": operation,
        "request": {"additionalParams": params},
        "vnf_instance": instance,
        "grant_request": {"removeResources": removed, "addResources": added},
        "user_script_err_handling_data": {},
        "tmp_csar_dir": "/package",
    }
    return hook.respond("ha_masters", Path("/package/Scripts/ha_masters.py"), given)


def test_mistakes_fail_the_operation_before_anything_is_touched() -> None:
    _, failure = call("instantiate_end", {"master_node": {}, "worker_node": GROUP})
    first = "additionalParams.k8s_cluster_installation_param.master_node.ssh_cp_name: is missing"
    assert failure.startswith(f"ha_masters: {first}; ")
    assert failure.endswith("it is the VDU of these servers")


@pytest.mark.parametrize("operation", ["instantiate_rollback_start", "instantiate_rollback_end"])
@pytest.mark.parametrize(
    ("given", "others"),
    [
        ({"master_node": {}, "worker_node": GROUP}, {}),
        (None, {}),
        ("all", {}),
        ({**PARAMETERS, "vim_name": "vim1"}, {}),
        ({**PARAMETERS, "vim_cloud": "unknown"}, {}),
        (PARAMETERS, {"wait-timeout": "soon"}),
    ],
    ids=["mistakes", "no parameters", "text", "name of another VIM", "cloud that the operator does not have", "time"],
)
def test_an_instantiate_that_was_refused_can_be_rolled_back(operation: str, given: Any, others: dict[str, Any]) -> None:
    """The request is the same, and so are its mistakes; nothing was made that would have to go."""
    assert call("instantiate_end", given, others=others)[1] != ""
    returned, failure = call(operation, given, others=others)
    assert failure == ""
    assert returned["vnf_instance"]["vimConnectionInfo"]["vim1"] == VIMS["vim1"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("all", {"parameters": PARAMETERS}), ({**PARAMETERS, "vim_cloud": "gone"}, {"host_keys": {"s": ["key"]}})],
    ids=["parameters", "cloud of the operator"],
)
def test_an_instantiate_that_has_made_something_is_not_rolled_back_without_it(given: Any, kept: dict[str, Any]) -> None:
    """Its request was right then, so the driver or tacker.conf is another one since."""
    _, failure = call("instantiate_rollback_start", given, metadata={"node_cluster": kept})
    assert failure.startswith("ha_masters: ")


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


@pytest.mark.parametrize("operation", ["instantiate_end", "scale_end", "terminate_start"])
def test_a_cluster_does_not_take_the_place_of_another_vim(operation: str) -> None:
    """Without the entry of the OpenStack project nobody could remove the servers."""
    returned, failure = call(operation, {**PARAMETERS, "vim_name": "vim1"})
    assert "vim_name: vim1 is the VIM of type ETSINFV.OPENSTACK_KEYSTONE.V_3 in vimConnectionInfo" in failure
    assert returned["vnf_instance"]["vimConnectionInfo"] == VIMS


def test_without_an_openstack_vim_there_are_no_servers() -> None:
    assert call("heal_end", PARAMETERS, vims={})[1] == "ha_masters: the VNF instance has no VIM of an OpenStack project"


def openstack_vim(**entry: Any) -> dict[str, Any]:
    return {"vim1": {**VIMS["vim1"], **entry}}


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
        _, failure = call("heal_end", {**PARAMETERS, "ssh_key": "blue"}, vims=openstack_vim(**cloud.vim()))
    if refused:
        assert refused in failure and not cloud.seen
    else:
        assert "stacks" in failure and cloud.seen, "the stack is looked for"


def test_the_services_of_the_vim_are_judged_by_the_options_of_endpoints(options_file: Path) -> None:
    options_file.write_text("[k8s_cr]\nallow_http_endpoints = true\n")
    with openstack.serving() as cloud:
        _, failure = call("heal_end", PARAMETERS, vims=openstack_vim(**cloud.vim()))
    assert "no connection to this host is permitted" in failure and "[k8s_cr] allowed_endpoints" in failure


@pytest.mark.parametrize("operation", ["instantiate_end", "scale_start", "scale_end", "heal_start", "heal_end"])
def test_operations_of_a_project_hold_a_share_of_the_workers(options_file: Path, operation: str) -> None:
    """Each of them waits for servers. The one beyond the share asks no cloud."""
    options_file.write_text("[DEFAULT]\nexecutor_thread_pool_size = 2\n")
    vims = openstack_vim(interfaceInfo={"endpoint": "http://[::1]/v3"}, accessInfo={"project": "blue"})
    with worker_of("http://[::1]/v3  blue", 1):
        _, failure = call(operation, PARAMETERS, vims=vims)
        assert "project_share lets it have on one conductor: 1." in failure
        assert call("terminate_start", PARAMETERS, vims=vims)[1] == "", "waits for nothing"


@pytest.mark.parametrize(
    ("given", "most"), [({}, 0.2), ({"wait-timeout": 0.2}, 100.0), ({"wait-timeout": 100}, 0.2)]
)
def test_an_operation_has_a_deadline(
    options_file: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], most: float
) -> None:
    """As that of other verbs: wait-timeout of the request, and max_wait_timeout. Here a cloud does not respond."""
    silent = socket.create_server(("127.0.0.1", 0))
    options_file.write_text("[k8s_cr]\nallowed_endpoints = *\nallow_http_endpoints = true\n")
    options = conf.of_conductor()
    options.max_wait_timeout = most
    monkeypatch.setattr(hook.Call, "options", options)
    interface = {"endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}/v3"}
    access = {"username": "u", "password": "p", "project": "p", "userDomain": "d", "projectDomain": "d"}
    with silent:
        vims = openstack_vim(interfaceInfo=interface, accessInfo=access)
        returned, failure = call("heal_end", PARAMETERS, vims=vims, others=given)
    assert failure.startswith("ha_masters: OpenStack, orchestration: GET /stacks/vnf-4a1f/s/resources: ")
    assert "timed out" in failure
    assert returned["user_script_err_handling_data"]["node_cluster"], "a retry goes on"


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


USER_DATA = {
    "lcm-operation-user-data": "./UserData/user_data.py",
    "lcm-operation-user-data-class": "StandardUserData",
}


@pytest.mark.parametrize("operation", ["scale_start", "heal_start"])
def test_an_operation_in_which_tacker_would_change_nothing_is_refused(operation: str) -> None:
    """Tacker's DefaultUserData says COMPLETED, and leaves the servers of another class as they are."""
    returned, failure = call("instantiate_end", PARAMETERS, others=USER_DATA)
    kept = returned["user_script_err_handling_data"]["node_cluster"]
    assert kept["user_data"] == USER_DATA and "no stack of Heat" not in kept
    metadata = {"node_cluster": kept}
    _, failure = call(operation, metadata=metadata)
    assert "the classes of user data must be repeated" in failure
    assert failure.endswith("lcm-operation-user-data: ./UserData/user_data.py, lcm-operation-user-data-class: StandardUserData")
    assert call(operation, metadata=metadata, others=USER_DATA)[1] == ""
    assert call(operation, PARAMETERS)[1] == "", "an instance that needs none"


@pytest.fixture
def registry(options_file: Path) -> Iterator[Registry]:
    """The operator lets clusters of the project become VIMs of this Tacker."""
    with openstack.serving() as cloud, tacker_api.openstack() as own:
        file = options_file.parent / "clouds.yaml"
        file.write_text(yaml.safe_dump({"clouds": {"tacker": own.entry}}))
        options = f"clouds_file = {file}\nkeystone = {cloud.url}/v3\nprojects = {openstack.PROJECT}\n"
        http = "[k8s_cr]\nallowed_endpoints = *\nallow_http_endpoints = true\n"
        options_file.write_text(f"{http}[k8s_cr_vim_cloud:bed]\n{options}")
        yield Registry(cloud, own)


@dataclass
class Registry:
    cloud: openstack.OpenStack
    own: tacker_api.Cloud

    def has(self, description: str) -> None:
        vim = Vim("blue", description, "https://10.0.0.100:16443", "", "t")
        self.own.vims["1"] = {"id": "1", **vim.body()["vim"]}

    def call(self, operation: str, **options: Any) -> tuple[dict[str, Any], str]:
        vims = {**openstack_vim(**self.cloud.vim()), "blue": VIMS["blue"]}
        return call(operation, {**PARAMETERS, "vim_cloud": "bed"}, vims=vims, **options)


OURS = "Cluster of the servers of VNF instance 4a1f"


@pytest.mark.parametrize(
    ("operation", "options"),
    [("terminate_start", {}), ("instantiate_rollback_end", {}), ("heal_start", {"removes": ("m0", "w0")})],
)
@pytest.mark.parametrize(("description", "left"), [(OURS, 0), ("of somebody else", 1)])
def test_a_cluster_that_goes_is_no_registered_vim_any_more(
    registry: Registry, operation: str, options: dict[str, Any], description: str, left: int
) -> None:
    registry.has(description)
    returned, failure = registry.call(operation, **options)
    assert (failure, len(registry.own.vims)) == ("", left)
    assert list(returned["vnf_instance"]["vimConnectionInfo"]) == ["vim1"]


def test_a_vim_that_tacker_does_not_remove_fails_the_terminate_and_its_retry_removes_it(registry: Registry) -> None:
    registry.has(OURS)
    registry.own.failures = [500]
    returned, failure = registry.call("terminate_start")
    assert "Tacker: GET /v1.0/vims: status 500" in failure
    assert list(returned["vnf_instance"]["vimConnectionInfo"]) == ["vim1", "blue"]
    assert registry.call("terminate_start")[1] == "" and not registry.own.vims


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("projects = id-of-others", "vim_cloud: the operator has the cloud red for other projects"),
        ("keystone = https://keystone.example.com/v3", "vim_cloud: the operator has the cloud red for another cloud"),
        ("clouds_file = /etc/none", "vim_cloud: red of the operator cannot be used; ask for its clouds_file"),
        ("clouds_file =", "vim_cloud: clouds_file of [k8s_cr_vim_cloud:red] names none; ask the operator"),
    ],
)
def test_only_the_projects_of_the_operator_have_their_clusters_registered(
    registry: Registry, options_file: Path, name: str, refused: str
) -> None:
    """It is known before anything is touched, and no path of the conductor's host is shown."""
    text = options_file.read_text()
    own = text.partition("[k8s_cr_vim_cloud:bed]\n")[2].replace("tacker.conf", "")
    kept = [line for line in own.splitlines() if not line.startswith(name.partition(" ")[0])]
    options_file.write_text(text + "\n".join(["[k8s_cr_vim_cloud:red]", *kept, name, ""]))
    vims = openstack_vim(**registry.cloud.vim())
    for operation in ("heal_end", "terminate_start"):
        _, failure = call(operation, {**PARAMETERS, "vim_cloud": "red"}, vims=vims)
        assert refused in failure and str(options_file.parent) not in failure and "/etc/none" not in failure
    assert not registry.own.requests


@pytest.mark.parametrize("driver", scripts.OWN)
def test_the_script_that_stands_in_mgmt_is_the_one_that_is_added(driver: str) -> None:
    assert (MGMT / driver / f"{driver}.py").read_text() == scripts.text(driver)


@pytest.mark.parametrize("driver", ["ha_masters", "persistent_volumes", "kubespray"])
def test_the_sample_names_the_operations_as_the_readme_does(driver: str) -> None:
    fragment = yaml.safe_load((MGMT / driver / "README.md").read_text().split("```yaml\n")[1].split("```")[0])
    sample = MGMT.parent / "sample_packages" / driver / "Definitions" / f"{driver}.yaml"
    content = yaml.safe_load(sample.read_text())
    named = fragment["topology_template"]["node_templates"]["VNF"]["interfaces"]["Vnflcm"]
    assert content["topology_template"]["node_templates"]["VNF"]["interfaces"]["Vnflcm"].keys() == named.keys()


def test_the_storage_server_is_not_scaled() -> None:
    metadata = {"node_cluster": {"storage": {"vdu": "storage_server"}}}
    _, failure = call("scale_start", PARAMETERS, metadata, adds=("storage_server",))
    problem = "VDU storage_server: the storage server is one server with its volumes, and cannot be scaled"
    assert failure == f"ha_masters: {problem}"
    returned, failure = call("scale_start", PARAMETERS, metadata, adds=("workerNode",))
    assert failure == ""
    assert returned["vnf_instance"]["metadata"]["node_cluster"]["storage"] == {"vdu": "storage_server"}


def test_each_driver_of_a_script_is_an_entry_point() -> None:
    setup = configparser.ConfigParser()
    setup.read(MGMT.parent / "setup.cfg")
    lines = setup["entry_points"][hook.GROUP].split("\n")
    named = dict(re.split(r"\s*=\s*", line) for line in lines if line)
    assert named.keys() == scripts.OWN.keys()
    for name, found in named.items():
        assert callable(importlib.metadata.EntryPoint(name, found, hook.GROUP).load())
