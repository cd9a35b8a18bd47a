"""The verbs as Tacker's conductor calls them, with Tacker's own objects, on the fake API server."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from oslo_config import cfg
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common.vnfd_utils import Vnfd

from k8s_cr_driver.lcm import conf
from k8s_cr_driver.lcm.driver import Driver
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import BLUE, config_map, crontab, crontab_crd, obj

objects.register_all()
conf.register(cfg.CONF)


RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Instance:
    """A VNF instance of a package whose only flavour has one VDU, named `web`, with a scaling aspect in steps of two."""

    driver: type = Driver

    def __init__(self, api: FakeApi, folder: Path, manifests: list[dict[str, Any]], **package: Any) -> None:
        self.inst = objects.VnfInstanceV2(
            id=BLUE,
            vimConnectionInfo={
                "vim1": objects.VimConnectionInfo.from_dict(
                    {
                        "vimType": "ETSINFV.KUBERNETES.V_1",
                        "vimId": BLUE,
                        "interfaceInfo": {"endpoint": api.url},
                        "accessInfo": {"bearer_token": "token"},
                    }
                )
            },
        )
        self.vnfd = make_vnfd(folder, manifests, **package)
        self.grant_req = grant("1")

    def instantiate(self, **params: Any) -> None:
        params = {"lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml"], "wait-timeout": 60, **params}
        self._req = req = objects.InstantiateVnfRequest.from_dict({"flavourId": "simple", "additionalParams": params})
        self.driver().instantiate(req, self.inst, self.grant_req, None, self.vnfd)

    def roll_back_instantiate(self) -> None:
        """As Tacker stores it after a failed instantiate: as it was before."""
        self.inst = objects.VnfInstanceV2(id=BLUE, vimConnectionInfo=self.inst.vimConnectionInfo)
        self.driver().instantiate_rollback(self._req, self.inst, self.grant_req, None, self.vnfd)

    def scale(self, type_: str, steps: int = 1) -> None:
        req = objects.ScaleVnfRequest.from_dict({"type": type_, "aspectId": "web", "numberOfSteps": steps})
        self.driver().scale(req, self.inst, grant(*map(str, range(2 * steps))), None, self.vnfd)

    def heal(self, *vnfcs: str, **params: Any) -> None:
        """The VNFCs of these ids; all if none is named."""
        chosen = {"vnfcInstanceId": [f"Web-{one}" for one in vnfcs]} if vnfcs else {}
        req = objects.HealVnfRequest.from_dict({**chosen, "additionalParams": params})
        found = vnfcs or [vnfc.id for vnfc in self.inst.instantiatedVnfInfo.vnfcResourceInfo]
        self.driver().heal(req, self.inst, grant(*found), None, self.vnfd)

    def change(self, vnfd: Vnfd, **params: Any) -> None:
        params = {"upgrade_type": "RollingUpdate", "vdu_params": [], "wait-timeout": 60, **params}
        req = objects.ChangeCurrentVnfPkgRequest.from_dict({"vnfdId": "new", "additionalParams": params})
        self.driver().change_vnfpkg(req, self.inst, self.grant_req, None, vnfd)

    def roll_back_change(self) -> None:
        req = objects.ChangeCurrentVnfPkgRequest.from_dict({"vnfdId": "new", "additionalParams": {}})
        self.driver().change_vnfpkg_rollback(req, self.inst, self.grant_req, None, self.vnfd)

    def terminate(self, type_: str = "FORCEFUL", grace_period: int = 1, **params: Any) -> None:
        body = {"terminationType": type_, "gracefulTerminationTimeout": grace_period, "additionalParams": params}
        req = objects.TerminateVnfRequest.from_dict(body)
        self.driver().terminate(req, self.inst, self.grant_req, None, self.vnfd)


def grant(*vnfcs: str) -> objects.GrantRequestV1:
    """For VNFCs of the VDU that come or go, as the operation means."""
    resources = [
        objects.ResourceDefinitionV1(
            id=one, type="COMPUTE", resourceTemplateId="Web", resource=objects.ResourceHandle(resourceId=one)
        )
        for one in vnfcs
    ]
    return objects.GrantRequestV1(vnfLcmOpOccId="operation", addResources=resources, removeResources=resources)


def make_vnfd(
    folder: Path,
    manifests: list[dict[str, Any]],
    *,
    flavour: str = "simple",
    vdus: dict[str, str] | None = None,
    aspects: dict[str, list[str]] | None = None,
    initial: int | None = None,
    parameters: dict[str, Any] | None = None,
) -> Vnfd:
    """`vdus`: id -> name of the object; `aspects`: id -> VDUs, with steps of 2; `initial`: instances at level 0."""
    vdus, aspects = vdus or {"Web": "web"}, aspects or {"web": ["Web"]}
    for name in ("TOSCA-Metadata", "Definitions", "Files/kubernetes"):
        (folder / name).mkdir(parents=True)
    (folder / "TOSCA-Metadata/TOSCA.meta").write_text("TOSCA-Meta-File-Version: 1.0\n\nName: Files/kubernetes/all.yaml\n")
    (folder / "Files/kubernetes/all.yaml").write_text(yaml.safe_dump_all(manifests))
    scaling = {aspect: {"max_scale_level": 5, "step_deltas": ["one"]} for aspect in aspects}
    policies = [{"aspects": _policy("ScalingAspects", aspects=scaling)}]
    for aspect, targets in aspects.items():
        deltas = _policy("VduScalingAspectDeltas", aspect=aspect, deltas={"one": {"number_of_instances": 2}})
        policies.append({f"{aspect}_deltas": {**deltas, "targets": targets}})
    if initial is not None:
        delta = _policy("VduInitialDelta", initial_delta={"number_of_instances": initial})
        policies.append({"initial": {**delta, "targets": list(vdus)}})
    template = {
        "substitution_mappings": {"node_type": "test.VNF", "properties": {"flavour_id": flavour}},
        "node_templates": {
            vdu: {"type": "tosca.nodes.nfv.Vdu.Compute", "properties": {"name": name}} for vdu, name in vdus.items()
        },
        "policies": policies,
    }
    inputs = {"additional_parameters": {"type": "test.Instantiate"}}
    vnflcm = {"type": "tosca.interfaces.nfv.Vnflcm", "instantiate": {"inputs": inputs}}
    definitions = {
        "topology_template": template,
        "node_types": {"test.VNF": {"derived_from": "tosca.nodes.nfv.VNF", "interfaces": {"Vnflcm": vnflcm}}},
        "data_types": {
            "test.Instantiate": {"properties": {"parameters": {"type": "test.Parameters"}}},
            "test.Parameters": {"properties": parameters or {}},
        },
    }
    (folder / "Definitions/vnfd.yaml").write_text(yaml.safe_dump(definitions))
    vnfd = Vnfd("vnfd")
    vnfd.init_from_csar_dir(str(folder))
    return vnfd


def _policy(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": f"tosca.policies.nfv.{name}", "properties": properties}


def deployment(replicas: int = 1) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return obj("apps/v1", "Deployment", "web", spec=spec)


def selecting(api: FakeApi, size: int) -> list[dict[str, Any]]:
    """A CRD and a CronTab, the object of the VDU `Web`, whose status selects the pods of `deployment` at once."""
    crd, manifest = crontab_crd(selector={"type": "string"}), crontab("tab")
    [version] = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] = {"type": "integer"}
    paths = dict.fromkeys(("specReplicasPath", "statusReplicasPath"), ".spec.size")
    version["subresources"]["scale"] = {**paths, "labelSelectorPath": ".status.selector"}
    manifest["spec"]["size"] = size
    manifest["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Web"}

    def select(live: dict[str, Any]) -> None:
        if not live.get("status"):
            api.set_status("CronTab", "default", "tab", {"selector": "app=web"})

    api.react("CronTab", select)
    return [crd, manifest]


def remove_pods(api: FakeApi, is_stale: Callable[[dict[str, Any]], bool]) -> None:
    """Of several writers of their Deployment at once each does it."""
    for pod in filter(is_stale, api.objects("Pod", "default")):
        with contextlib.suppress(LookupError):
            api.delete("Pod", "default", pod["metadata"]["name"])


@pytest.fixture
def cluster(api: FakeApi) -> FakeApi:
    """Its Deployment gets its Pods at once, through a ReplicaSet and under names that are never used again."""

    def roll_out(live: dict[str, Any]) -> None:
        if api.find("ReplicaSet", "default", "web") is None:
            api.put(controllers.owned(live, "apps/v1", "ReplicaSet", "web", spec=live["spec"]))
        owner = controllers.owned(api.get("ReplicaSet", "default", "web"), "v1", "Pod", "", spec=live["spec"])["metadata"]
        wanted = 0 if live["metadata"].get("deletionTimestamp") else live["spec"]["replicas"]
        containers = live["spec"]["template"]["spec"]["containers"]
        remove_pods(api, lambda pod: pod["spec"]["containers"][0]["image"] != containers[0]["image"])
        pods = api.names("Pod", "default")
        for _ in range(wanted - len(pods)):
            pod = obj("v1", "Pod", f"web-5d8f7c-{uuid.uuid4().hex[:5]}", spec={"containers": containers}, status=RUNNING)
            api.put({**pod, "metadata": {**owner, **pod["metadata"]}})
        while len(pods := api.names("Pod", "default")) > wanted:
            with contextlib.suppress(LookupError):
                api.delete("Pod", "default", pods[-1])
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
        status = {"observedGeneration": live["metadata"]["generation"], **counts}
        status["conditions"] = [{"type": "Available", "status": "True"}]
        current = api.find("Deployment", "default", "web")
        if current is not None and current.get("status") != status:
            api.set_status("Deployment", "default", "web", status)

    def roll_out_again(_: dict[str, Any]) -> None:
        live = api.find("Deployment", "default", "web")
        if live is not None:
            roll_out(live)

    api.react("Deployment", roll_out)
    api.react("ReplicaSet", roll_out_again)
    return api


def test_instantiate_tells_its_vnfcs_and_keeps_its_options(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(2), crontab_crd(), crontab("tab", "")])
    blue.instantiate()
    info = blue.inst.instantiatedVnfInfo
    assert sorted(vnfc.id for vnfc in info.vnfcResourceInfo) == sorted(cluster.names("Pod", "default"))
    assert len(info.vnfcResourceInfo) == 2
    assert {vnfc.vduId for vnfc in info.vnfcResourceInfo} == {"Web"}
    assert [vnfc.vnfcResourceInfoId for vnfc in info.vnfcInfo] == [vnfc.id for vnfc in info.vnfcResourceInfo]
    assert info.metadata["k8s_cr"]["wait-timeout"] == 60
    assert cluster.names("CronTab", "default") == ["tab"]


def test_scale_counts_from_what_is_stored(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    blue.scale("SCALE_OUT", 2)
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 5
    assert len(blue.inst.instantiatedVnfInfo.vnfcResourceInfo) == 5
    blue.scale("SCALE_IN")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3
    assert blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]["spec"]["replicas"] == 3


def test_more_replicas_than_there_are_cannot_go(cluster: FakeApi, tmp_path: Path) -> None:
    """A change of package may have set a count that is below the one of the scale level."""
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    with pytest.raises(sol_ex.SolException, match="numberOfSteps: VDU Web has 1 replicas and cannot lose 2") as refused:
        blue.scale("SCALE_IN")
    assert refused.value.status == 400
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 1


@pytest.mark.parametrize("end", ["terminate", "roll_back_instantiate"])
def test_nothing_is_left_at_the_end(cluster: FakeApi, tmp_path: Path, end: str) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("a"), obj("v1", "Namespace", "blue")])
    blue.instantiate()
    getattr(blue, end)()
    assert cluster.names("Deployment") == []
    assert cluster.names("ConfigMap") == []
    assert "blue" not in cluster.names("Namespace")


def test_a_graceful_terminate_has_the_time_of_the_pods_as_well(cluster: FakeApi, tmp_path: Path) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    blue = Instance(cluster, tmp_path, [deployment(1), held])
    blue.instantiate()
    with pytest.raises(sol_ex.SolException, match=r"not gone after ([2-9]|\d\d) s.*\n.*held by finalizers example.com/hold"):
        blue.terminate("GRACEFUL", grace_period=1, **{"wait-timeout": 1})


def test_the_namespace_of_the_inventory_is_not_brought_by_a_package(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1), obj("v1", "Namespace", "default")])
    with pytest.raises(sol_ex.SolException, match=r"Namespace default holds .*\[k8s_cr\] inventory_namespace") as refused:
        blue.instantiate(**{"adopt-existing": True})
    assert refused.value.status == 400
    assert cluster.requests.writes == []


def test_a_refused_package_leaves_nothing(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(config_map("theirs"))
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("theirs"), config_map("ours")])
    with pytest.raises(sol_ex.SolException, match="ConfigMap default/theirs exists already") as refused:
        blue.instantiate()
    assert refused.value.status == 409
    assert cluster.names("Deployment") == []
    assert cluster.names("ConfigMap") == ["theirs"]


def test_a_vdu_that_names_nothing_is_told_before_anything_is_written(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [config_map("a")])
    with pytest.raises(sol_ex.SolException, match="VDU Web is no object of the manifests"):
        blue.instantiate()
    assert cluster.names("ConfigMap") == []


def test_what_is_not_ready_in_time_is_told_with_its_reason(api: FakeApi, tmp_path: Path) -> None:
    blue = Instance(api, tmp_path, [deployment(1)])
    with pytest.raises(sol_ex.SolException, match=r"not ready after \d s:\nDeployment.apps default/web: Waiting"):
        blue.instantiate(**{"wait-timeout": 1})




def test_a_server_that_has_too_much_to_do_is_asked_again(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.fail(faults.too_many(0), path="^/api$")
    cluster.fail(faults.unavailable(), path="^/apis$")
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    assert cluster.names("Deployment") == ["web"]
    assert not cluster.faults_pending


def test_an_inventory_is_found_where_it_was_made(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    cfg.CONF.set_override("inventory_namespace", "kube-system", "k8s_cr")
    try:
        blue.terminate()
    finally:
        cfg.CONF.clear_override("inventory_namespace", "k8s_cr")
    assert cluster.names("Deployment") == []
    assert cluster.names("ConfigMap") == []
