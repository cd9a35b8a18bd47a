"""The verbs as Tacker's conductor calls them, with Tacker's own objects, on the fake API server."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from oslo_config import cfg
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common.vnfd_utils import Vnfd

from k8s_cr_driver import conf
from k8s_cr_driver.driver import Driver
from tests.engine.instance import BLUE, config_map, crontab, crontab_crd, obj
from tests.fake_api import FakeApi, controllers, faults

objects.register_all()
conf.register(cfg.CONF)


class Instance:
    """A VNF instance of a package whose only flavour has one VDU, the Deployment `web`, with a scaling aspect."""

    def __init__(self, api: FakeApi, folder: Path, manifests: list[dict[str, Any]]) -> None:
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
        self.vnfd = _vnfd(folder, manifests)
        self.grant_req = objects.GrantRequestV1(vnfLcmOpOccId="operation", vnfInstanceId=BLUE)

    def instantiate(self, **params: Any) -> None:
        params = {"lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml"], "wait-timeout": 5, **params}
        req = objects.InstantiateVnfRequest.from_dict({"flavourId": "simple", "additionalParams": params})
        Driver().instantiate(req, self.inst, self.grant_req, None, self.vnfd)

    def roll_back_instantiate(self) -> None:
        req = objects.InstantiateVnfRequest.from_dict({"flavourId": "simple", "additionalParams": {}})
        Driver().instantiate_rollback(req, self.inst, self.grant_req, None, self.vnfd)

    def scale(self, type_: str, steps: int = 1) -> None:
        req = objects.ScaleVnfRequest.from_dict({"type": type_, "aspectId": "web", "numberOfSteps": steps})
        Driver().scale(req, self.inst, self.grant_req, None, self.vnfd)

    def heal(self, *vnfcs: str, **params: Any) -> None:
        body = {"vnfcInstanceId": [f"Web-{one}" for one in vnfcs], "additionalParams": params}
        resources = [
            objects.ResourceDefinitionV1(
                id=one, type="COMPUTE", resourceTemplateId="Web", resource=objects.ResourceHandle(resourceId=one)
            )
            for one in vnfcs
        ]
        grant_req = objects.GrantRequestV1(vnfLcmOpOccId="operation", removeResources=resources)
        Driver().heal(objects.HealVnfRequest.from_dict(body), self.inst, grant_req, None, self.vnfd)

    def change(self, vnfd: Vnfd, **params: Any) -> None:
        params = {"upgrade_type": "RollingUpdate", "vdu_params": [], "wait-timeout": 5, **params}
        req = objects.ChangeCurrentVnfPkgRequest.from_dict({"vnfdId": "new", "additionalParams": params})
        Driver().change_vnfpkg(req, self.inst, self.grant_req, None, vnfd)

    def roll_back_change(self) -> None:
        req = objects.ChangeCurrentVnfPkgRequest.from_dict({"vnfdId": "new", "additionalParams": {}})
        Driver().change_vnfpkg_rollback(req, self.inst, self.grant_req, None, self.vnfd)

    def terminate(self, type_: str = "FORCEFUL", **params: Any) -> None:
        req = objects.TerminateVnfRequest.from_dict({"terminationType": type_, "additionalParams": params})
        Driver().terminate(req, self.inst, self.grant_req, None, self.vnfd)


def _vnfd(folder: Path, manifests: list[dict[str, Any]]) -> Vnfd:
    for name in ("TOSCA-Metadata", "Definitions", "Files/kubernetes"):
        (folder / name).mkdir(parents=True)
    (folder / "TOSCA-Metadata/TOSCA.meta").write_text("TOSCA-Meta-File-Version: 1.0\n")
    (folder / "Files/kubernetes/all.yaml").write_text(yaml.safe_dump_all(manifests))
    policies = [
        {"aspects": _policy("ScalingAspects", aspects={"web": {"max_scale_level": 5, "step_deltas": ["one"]}})},
        {
            "deltas": {
                **_policy("VduScalingAspectDeltas", aspect="web", deltas={"one": {"number_of_instances": 2}}),
                "targets": ["Web"],
            }
        },
    ]
    vdu = {"type": "tosca.nodes.nfv.Vdu.Compute", "properties": {"name": "web"}}
    template = {
        "substitution_mappings": {"properties": {"flavour_id": "simple"}},
        "node_templates": {"Web": vdu},
        "policies": policies,
    }
    (folder / "Definitions/vnfd.yaml").write_text(yaml.safe_dump({"topology_template": template}))
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


@pytest.fixture
def cluster(api: FakeApi) -> FakeApi:
    """Its Deployment gets its Pods at once, under names that are never used again."""

    def roll_out(live: dict[str, Any]) -> None:
        owner = controllers.owned(live, "v1", "Pod", "", spec=live["spec"])["metadata"]
        wanted = 0 if live["metadata"].get("deletionTimestamp") else live["spec"]["replicas"]
        pods = api.names("Pod", "default")
        for _ in range(wanted - len(pods)):
            pod = obj("v1", "Pod", f"web-{uuid.uuid4().hex[:5]}", status={"phase": "Running"})
            api.put({**pod, "metadata": {**owner, **pod["metadata"]}})
        while len(pods := api.names("Pod", "default")) > wanted:
            api.delete("Pod", "default", pods[-1])
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
        status = {"observedGeneration": live["metadata"]["generation"], **counts}
        status["conditions"] = [{"type": "Available", "status": "True"}]
        current = api.find("Deployment", "default", "web")
        if current is not None and current.get("status") != status:
            api.set_status("Deployment", "default", "web", status)

    api.react("Deployment", roll_out)
    return api


def test_instantiate_tells_its_vnfcs_and_keeps_its_options(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(2), crontab_crd(), crontab("tab", "")])
    blue.instantiate()
    info = blue.inst.instantiatedVnfInfo
    assert sorted(vnfc.id for vnfc in info.vnfcResourceInfo) == sorted(cluster.names("Pod", "default"))
    assert len(info.vnfcResourceInfo) == 2
    assert {vnfc.vduId for vnfc in info.vnfcResourceInfo} == {"Web"}
    assert [vnfc.vnfcResourceInfoId for vnfc in info.vnfcInfo] == [vnfc.id for vnfc in info.vnfcResourceInfo]
    assert info.metadata["k8s_cr"]["wait-timeout"] == 5
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


@pytest.mark.parametrize("end", ["terminate", "roll_back_instantiate"])
def test_nothing_is_left_at_the_end(cluster: FakeApi, tmp_path: Path, end: str) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("a"), obj("v1", "Namespace", "blue")])
    blue.instantiate()
    getattr(blue, end)()
    assert cluster.names("Deployment") == []
    assert cluster.names("ConfigMap") == []
    assert "blue" not in cluster.names("Namespace")


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
    with pytest.raises(sol_ex.SolException, match=r"1 of 1 objects not ready after 1 s:\nDeployment.apps default/web: Waiting"):
        blue.instantiate(**{"wait-timeout": 1})


def test_heal_replaces_the_chosen_pod_and_no_other(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(2)])
    blue.instantiate()
    chosen, other = cluster.names("Pod", "default")
    blue.heal(chosen)
    after = cluster.names("Pod", "default")
    assert other in after
    assert chosen not in after
    assert {vnfc.id for vnfc in blue.inst.instantiatedVnfInfo.vnfcResourceInfo} == set(after)
    assert len(after) == 2


def test_heal_undoes_what_somebody_has_changed(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate(**{"force-conflicts": True})

    def drift(live: dict[str, Any]) -> None:
        live["spec"]["template"]["spec"]["containers"][0]["image"] = "drifted:1"

    cluster.edit("Deployment", "default", "web", drift)
    blue.heal(*cluster.names("Pod", "default"))
    assert cluster.get("Deployment", "default", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"


def test_a_new_package_adds_changes_and_prunes_and_keeps_the_count(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path / "old", [deployment(1), config_map("kept"), config_map("dropped")])
    blue.instantiate()
    blue.scale("SCALE_OUT")
    blue.change(_vnfd(tmp_path / "new", [deployment(1), config_map("kept", x="2"), config_map("added")]))
    assert {"kept", "added"} == set(cluster.names("ConfigMap")) - {f"k8s-cr-driver-{BLUE}"}
    assert cluster.get("ConfigMap", "default", "kept")["data"] == {"x": "2"}
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3
    assert blue.inst.vnfdId == "new"


def test_rollback_of_a_change_restores_the_former_set(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path / "old", [deployment(1), config_map("kept"), config_map("dropped")])
    blue.instantiate()
    stored = blue.inst.obj_clone()
    broken = crontab_crd(phase={"type": "string"})
    new = _vnfd(tmp_path / "new", [deployment(1), config_map("added"), broken, crontab("never-ready")])
    with pytest.raises(sol_ex.SolException, match=r"CronTab.stable.example.com default/never-ready: Waiting"):
        blue.change(new, **{"wait-timeout": 1})
    blue.inst = stored  # Tacker saves the instance only after success
    blue.roll_back_change()
    assert {"kept", "dropped"} == set(cluster.names("ConfigMap")) - {f"k8s-cr-driver-{BLUE}"}
    assert cluster.names("CustomResourceDefinition") == []


def test_a_changed_endpoint_is_refused(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path / "old", [deployment(1)])
    blue.instantiate()
    blue.inst.vimConnectionInfo["vim1"].interfaceInfo = {"endpoint": "http://127.0.0.1:1"}
    with pytest.raises(sol_ex.SolException, match="the endpoint cannot change"):
        blue.change(_vnfd(tmp_path / "new", [deployment(1)]))


def test_what_has_not_changed_is_no_difference(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(2)])
    blue.instantiate()
    vim = blue.inst.vimConnectionInfo["vim1"]
    with pytest.raises(sol_ex.DbSyncNoDiff):
        Driver().diff_check_inst(blue.inst, vim)
    cluster.delete("Pod", "default", cluster.names("Pod", "default")[0])
    Driver().diff_check_inst(blue.inst, vim)


def test_an_instance_of_tackers_own_driver_is_not_terminated_in_silence(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    del blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]
    with pytest.raises(sol_ex.SolException, match="was made by Tacker's own Kubernetes driver"):
        blue.terminate()
    assert cluster.names("Deployment") == ["web"]


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
