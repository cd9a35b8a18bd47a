# SPDX-License-Identifier: Apache-2.0
"""`validate` of packages whose servers become a cluster: what would fail at the instantiate, or much later."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sample_packages import balancers
from tests.cli.tool import Tool

ROOT = Path(__file__).parents[2]
HA, VOLUMES = "ha_masters", "persistent_volumes"
PARAMETER = "k8s_cluster_installation_param"
VNFD, TOP, MASTER = "Definitions/ha_masters.yaml", "BaseHOT/simple/ha_masters.yaml", "BaseHOT/simple/nested/masterNode.yaml"
BALANCER = "BaseHOT/simple/nested/balancerNode.yaml"
GROUP = {"username": "ubuntu"}
REQUEST: dict[str, Any] = {
    "script_path": "Scripts/install.sh",
    "ssh_key": "blue",
    "master_node": {**GROUP, "vdu_id": "masterNode", "ssh_cp_name": "masterNode_CP1", "cluster_cp_name": "vip_CP"},
    "worker_node": {**GROUP, "vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1"},
}
SECTION = {"vdu_id": "balancerNode", "ssh_cp_name": "balancerNode_CP1", "ssh_username": "ubuntu"}
OUTSIDE: dict[str, Any] = {**REQUEST, "external_lb_param": SECTION}


def of_tutorial(name: str) -> list[Any]:
    """The additionalParams of the requests in the tutorial of this name."""
    text = (ROOT / f"doc/source/tutorial/{name}.rst").read_text()
    blocks = re.findall(r"code-block:: json\n\n((?:   .*\n|\n)+)", text)
    return [json.loads(textwrap.dedent(one))["additionalParams"] for one in blocks]


REQUESTS = {
    "ha_masters": REQUEST,
    "balancers": OUTSIDE,
    **{name: of_tutorial(name)[0][PARAMETER] for name in ("kubespray", "persistent_volumes")},
}


class Package:
    """A copy of a sample package, as `validate` judges it; `balancers` is ha_masters with them."""

    def __init__(self, tool: Tool, home: Path, sample: str) -> None:
        self._tool, self.sample = tool, sample
        origin = ROOT / "sample_packages" / ("ha_masters" if sample == "balancers" else sample)
        self.folder = Path(shutil.copytree(origin, home / "package"))
        (self.folder / "Files").mkdir(exist_ok=True)
        (self.folder / "Files/network.yaml").write_text("")
        if sample == "balancers":
            balancers.add(self.folder)

    def change(self, name: str, how: Callable[[Any], object]) -> None:
        content = yaml.safe_load((self.folder / name).read_text())
        how(content)
        (self.folder / name).write_text(yaml.safe_dump(content))

    def judged(self, given: Any = None, code: int = 0, **body: Any) -> tuple[list[str], list[str]]:
        """The errors and the warnings, with a request that has this parameter if it is given, and the rest of the body."""
        options = []
        if given is not None:
            file = self.folder.parent / "request.json"
            params = {PARAMETER: given, **body.pop("additionalParams", {})}
            file.write_text(json.dumps({"additionalParams": params, **body}))
            options = ["--request", str(file)]
        said = self._tool.json("validate", str(self.folder), *options, code=code)
        return said["problems"], said["warnings"]


@pytest.fixture
def package(tool: Tool, tmp_path: Path, sample: str) -> Package:
    return Package(tool, tmp_path, sample)


@pytest.mark.parametrize("sample", REQUESTS)
def test_a_sample_and_a_request_for_it_have_no_mistake(package: Package) -> None:
    assert package.judged() == package.judged(REQUESTS[package.sample]) == ([], [])


@pytest.mark.parametrize("sample", ["ha_masters"])
def test_the_request_of_the_tutorial_fits_the_sample(package: Package) -> None:
    request, repeated = of_tutorial("ha_masters")
    assert package.judged(request[PARAMETER]) == ([], [])
    assert repeated.items() <= request.items()


def policy(content: Any, name: str) -> Any:
    return next(one[name] for one in content["topology_template"]["policies"] if name in one)


def operations(content: Any) -> Any:
    return content["topology_template"]["node_templates"]["VNF"]["interfaces"]["Vnflcm"]


def node_type(content: Any) -> Any:
    return content["node_types"]["sample.ha_masters.VNF"]


def count(name: str, number: int) -> Callable[[Any], object]:
    return lambda c: policy(c, name)["properties"]["initial_delta"].update(number_of_instances=number)


def scaled(vdu: str) -> Callable[[Any], object]:
    return lambda c: policy(c, "worker_deltas")["targets"].append(vdu)


def without_pair(port: str) -> Callable[[Any], object]:
    return lambda c: c["resources"][port]["properties"].pop("allowed_address_pairs")


def elsewhere(vdu: str) -> Callable[[Any], object]:
    return lambda c: c["resources"][vdu]["properties"].update(virtual_ip={"get_attr": ["nodes", "name"]})


NO_PAIR = "no allowed_address_pairs of its port has the address of a port of the top template"


@pytest.mark.parametrize(
    ("sample", "file", "how", "problem"),
    [
        (HA, VNFD, lambda c: operations(c).update(heal={"implementation": "ha-masters"}), "heal names ha_masters, which"),
        (HA, VNFD, count("master_initial", 2), "master_initial: masterNode has 2 masters; etcd needs an odd number, at"),
        (
            HA,
            VNFD,
            lambda c: policy(c, "master_levels")["properties"]["levels"]["level_1"].update(number_of_instances=1),
            "policy master_levels: masterNode has 1 masters; etcd needs an odd number, at least 3; persistent_volumes takes",
        ),
        (HA, VNFD, scaled("masterNode"), "policy worker_deltas: adds an odd number of masters to masterNode"),
        (HA, MASTER, without_pair("masterNode_CP1"), "no port of a VDU has allowed_address_pairs; the masters' port needs"),
        (HA, TOP, elsewhere("masterNode"), f"VDU masterNode: {NO_PAIR}"),
        (HA, TOP, lambda c: c.clear(), "Flavour simple: BaseHOT/simple: has no template of Heat"),
        (HA, VNFD, lambda c: node_type(c)["interfaces"]["Vnflcm"].pop("scale_rollback_start"), "; declare that operation"),
        (
            HA,
            VNFD,
            lambda c: node_type(c)["requirements"][0]["virtual_link_external_masters"].pop("occurrences"),
            'Relationship "virtual_link_external_masters" in template "VNF" has a wrong number of occurrences; give that requi',
        ),
        ("balancers", VNFD, count("balancer_initial", 1), "policy balancer_initial: balancerNode has 1 load balancers; the"),
        ("balancers", VNFD, count("master_initial", 2), "policy master_initial: masterNode has 2 masters; etcd needs an odd"),
        ("balancers", VNFD, scaled("balancerNode"), "worker_deltas: scales balancerNode; the number of load balancers stays"),
        ("balancers", BALANCER, without_pair("balancerNode_CP1"), f"VDU balancerNode: {NO_PAIR}"),
        ("balancers", TOP, elsewhere("balancerNode"), f"VDU balancerNode: {NO_PAIR}"),
    ],
)
def test_a_mistake_that_an_instantiate_would_show_is_one_of_the_package(
    package: Package, file: str, how: Callable[[Any], object], problem: str
) -> None:
    package.change(file, how)
    problems, _ = package.judged(OUTSIDE if package.sample == "balancers" else None, code=1)
    assert any(problem in one for one in problems), problems


@pytest.mark.parametrize("sample", ["ha_masters"])
def test_an_operation_that_does_not_name_the_driver_is_reported_with_what_follows(package: Package) -> None:
    package.change(VNFD, lambda c: operations(c).pop("heal_start"))
    expected = "Flavour simple: heal_start does not name ha_masters, so a master is replaced while etcd counts on it"
    assert package.judged() == ([], [expected])


@pytest.mark.parametrize("sample", ["balancers"])
def test_masters_that_balance_themselves_need_the_pair(package: Package) -> None:
    """The request does without the servers that the package has for that."""
    problems, _ = package.judged(REQUEST, code=1)
    assert problems == [f"Flavour simple: VDU masterNode: {NO_PAIR}; give it that of the virtual IP"]


@pytest.mark.parametrize(
    ("sample", "changes", "problem"),
    [
        (HA, {"master_node": {"vdu_id": "masterNod"}}, "master_node.vdu_id: masterNod is no VDU; did you mean masterNode?"),
        (HA, {"worker_node": {"ssh_cp_name": "workerNode_CP"}}, "worker_node: workerNode_CP is no resource of the templa"),
        (HA, {"master_node": {"cluster_cp_name": "vip"}}, "master_node: vip is no resource of the top template"),
        (HA, {"master_node": {"username": "a;b"}}, "master_node.username: must be the name of a user"),
        (HA, {"script_path": "Scripts/instal.sh"}, "Scripts/instal.sh is not in the package"),
        ("balancers", {"external_lb_param": {"vdu_id": "balancerNod"}}, "balancerNod is no VDU; did you mean balancerNode?"),
        ("balancers", {"external_lb_param": {"ssh_cp_name": "vip_CP"}}, "vip_CP is no resource of the template of balancer"),
        ("balancers", {"external_lb_param": {"script_path": "Scripts/b.sh"}}, "Scripts/b.sh is not in the package"),
        (
            "balancers",
            {"external_lb_param": {"vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1"}},
            "external_lb_param.vdu_id: is that of worker_node",
        ),
        ("kubespray", {"external_lb_param": {"ssh_cp_name": "externalLB_CP"}}, "externalLB_CP is no resource of a template"),
        ("kubespray", {"external_lb_param": {"script_path": "Scripts/lb.sh"}}, "Scripts/lb.sh is not in the package"),
        ("kubespray", {"ansible": {"ip_address": "0.0.0.0"}}, "ansible.ip_address: must be the IP address of a server"),
        ("kubespray", {"worker_node": {"ssh_cp_name": "workerNode_CP9"}}, "worker_node: workerNode_CP9 is no resource"),
        (VOLUMES, {"storage_server": {"ssh_cp_name": "server_CP"}}, "server_CP is no resource of a template"),
        (VOLUMES, {"master_node": {"cluster_cp_name": "master_CP1"}}, "master_CP1 is no resource of the top template"),
        (
            VOLUMES,
            {"storage_server": {"cinder_volume_setup_params": {"volume_resource_id": "data"}}},
            "storage_server: data is no resource of a template",
        ),
        (
            VOLUMES,
            {"pv_registration_params": {"pv_manifest_file_path": "Files/volumes/none.yaml"}},
            "Files/volumes/none.yaml is not in the package",
        ),
        (
            VOLUMES,
            {"pv_registration_params": {"pv_manifest_file_path": "Definitions/persistent_volumes.yaml"}},
            "pv_registration_params: Definitions/persistent_volumes.yaml, document 1: must be a PersistentVolume of v1",
        ),
        (
            VOLUMES,
            {"storage_server": {"nfs_server_setup_params": {"export_dir": "/volume/nfs/other"}}},
            "Files/volumes/nfs-pv1.yaml, document 1: spec.nfs.path /volume/nfs/pv1 is not exported by the storage server, but",
        ),
    ],
)
def test_a_request_is_checked_with_the_package(package: Package, changes: dict[str, Any], problem: str) -> None:
    problems, _ = package.judged(changed(REQUESTS[package.sample], changes), code=1)
    assert any(problem in one for one in problems), problems
    assert len(problems) == 1 or package.sample == "balancers"


def changed(value: Any, changes: Any) -> Any:
    """With these fields instead; of a list in its first entry."""
    if isinstance(value, list):
        return [changed(value[0], changes), *value[1:]]
    if isinstance(value, dict) and isinstance(changes, dict):
        return {**value, **{name: changed(value.get(name), one) for name, one in changes.items()}}
    return changes


@pytest.mark.parametrize("sample", ["ha_masters"])
def test_ssh_needs_a_key_or_a_password(package: Package) -> None:
    given = changed({key: value for key, value in REQUEST.items() if key != "ssh_key"}, {"worker_node": {"password": "x"}})
    problems, _ = package.judged(given, code=1)
    [problem] = problems
    assert f"{PARAMETER}.master_node.password: is missing, and ssh_key, too; give one of them, by which SSH logs in" in problem


DATA, CLASS = "lcm-operation-user-data", "lcm-operation-user-data-class"
MADE = {DATA: "./UserData/user_data.py", CLASS: "StandardUserData"}


@pytest.mark.parametrize("sample", ["ha_masters"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"additionalParams": MADE}, ""),
        ({"additionalParams": {**MADE, DATA: "UserData/data.py"}}, f"{DATA}: UserData/data.py is not in the package"),
        ({"additionalParams": {**MADE, CLASS: "Standard"}}, f"{CLASS}: ./UserData/user_data.py has no class Standard"),
        ({"additionalParams": {CLASS: "StandardUserData"}}, f"{DATA}: is missing; Tacker takes both or none"),
        (
            {"vimConnectionInfo": {"blue": {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}}},
            "vim_name: blue is the VIM of type ETSINFV.OPENSTACK_KEYSTONE.V_3 in vimConnectionInfo; choose another name",
        ),
    ],
)
def test_the_rest_of_a_request_is_checked_too(package: Package, body: dict[str, Any], problem: str) -> None:
    problems, _ = package.judged({**REQUEST, "vim_name": "blue"}, code=1 if problem else 0, **body)
    assert len(problems) == bool(problem) and all(problem in one for one in problems), problems


@pytest.mark.parametrize("sample", ["ha_masters"])
def test_a_request_is_checked_with_its_flavour_alone(package: Package) -> None:
    """Another flavour has other names and numbers, which are its own mistakes or none."""
    shutil.copytree(package.folder / "BaseHOT/simple", package.folder / "BaseHOT/large")
    vnfd = yaml.safe_load((package.folder / VNFD).read_text().replace("flavour_id: simple", "flavour_id: large"))
    (package.folder / "Definitions/large.yaml").write_text(yaml.safe_dump(vnfd))
    package.change("BaseHOT/large/ha_masters.yaml", lambda c: c["resources"].update(other=c["resources"].pop("vip_CP")))
    found = {name: package.judged(REQUEST, code=1, flavourId=name)[0] for name in ("simple", "large")}
    wrong = "master_node: vip_CP is no resource of the top template"
    assert [any(wrong in one for one in found[name]) for name in ("simple", "large")] == [False, True], found


@pytest.mark.parametrize("sample", ["ha_masters"])
def test_a_request_that_is_no_json_is_a_mistake(tool: Tool, package: Package, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text("flavourId: simple\n")
    shown = tool.run("validate", str(package.folder), "--request", str(tmp_path / "request.json"), code=1).output
    assert "cannot be read as JSON" in shown
