# SPDX-License-Identifier: Apache-2.0
"""Scale and its rollback: counts continue from the stored ones, and a scale in waits until its VNFCs are deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.driver import Driver
from k8s_cr_driver.vnf import surplus
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, crontab, crontab_crd, replaced, stateful_set
from tests.lcm.instance import Instance, instantiated
from tests.lcm.web import deployment, selecting
from tests.times import change_times

OURS = f"k8s-cr-driver-{BLUE}"


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    change_times(monkeypatch, count_every=0.02)


@pytest.fixture
def tab(cluster: FakeApi, tmp_path: Path) -> Instance:
    """A CronTab of size 3, and as many pods: those that its status selects, which a Deployment of somebody else has."""
    cluster.put(deployment(3))
    made = instantiated(cluster, tmp_path, selecting(cluster, 3))
    cluster.requests.clear()
    return made


def vnfcs(tab: Instance) -> list[str]:
    return sorted(vnfc.id for vnfc in tab.inst.instantiatedVnfInfo.vnfcResourceInfo)


def looks(cluster: FakeApi) -> int:
    return len(cluster.requests.select("GET", "/api/v1/namespaces/default/pods", watch=False))


def test_scale_counts_from_what_is_stored(cluster: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(cluster, tmp_path, [deployment(1)])
    blue.scale("SCALE_OUT", 2)
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 5
    assert len(blue.inst.instantiatedVnfInfo.vnfcResourceInfo) == 5
    blue.scale("SCALE_IN")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3
    assert blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]["spec"]["replicas"] == 3


def with_default(count: int) -> list[dict[str, Any]]:
    """A CronTab that names no count, and a CRD with that default for it."""
    crd, manifest = crontab_crd(), crontab("web")
    version = crd["spec"]["versions"][0]
    count_schema = {"type": "integer", "default": count}
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] = count_schema
    version["subresources"] = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
    return [crd, manifest]


@pytest.mark.parametrize("is_stored", [True, False])
def test_scale_continues_from_the_default_count_of_the_crd(api: FakeApi, tmp_path: Path, is_stored: bool) -> None:
    """Also of an instance whose record has no count, as earlier versions of this driver stored it."""
    blue = instantiated(api, tmp_path, with_default(5))
    assert vnfcs(blue) == [f"web-{index}" for index in range(5)]
    if not is_stored:
        del blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]["spec"]["replicas"]
    blue.scale("SCALE_OUT")
    assert api.get("CronTab", "default", "web")["spec"]["replicas"] == 7
    assert len(vnfcs(blue)) == 7


def test_a_level_of_zero_instances_is_instantiated_and_scaled_from(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(3)], levels={"none": 0, "some": 2})
    blue.instantiate(level="none")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 0
    assert vnfcs(blue) == []
    blue.scale("SCALE_OUT")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 2


def test_a_level_that_does_not_name_the_vdu_keeps_the_count_of_its_manifest(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(3)], levels={"other": 1, "empty": None})
    blue.instantiate(level="empty")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3


@pytest.mark.parametrize(("levels", "known"), [({"small": 1, "large": 2}, "large, small"), (None, "none")])
def test_a_level_that_the_vnfd_does_not_have_is_refused(
    cluster: FakeApi, tmp_path: Path, levels: dict[str, int | None] | None, known: str
) -> None:
    words = rf"instantiationLevelId: the VNFD has no level 'Large'; its levels: {known}\. Name another one"
    with pytest.raises(sol_ex.SolException, match=words):
        Instance(cluster, tmp_path, [deployment(1)], levels=levels).instantiate(level="Large")
    assert cluster.requests.writes == []


def test_scale_in_below_zero_is_refused(cluster: FakeApi, tmp_path: Path) -> None:
    """A change of package may have set a count that is below the one of the scale level."""
    blue = instantiated(cluster, tmp_path, [deployment(1)])
    with pytest.raises(sol_ex.SolException, match="numberOfSteps: VDU Web has 1 replicas and cannot lose 2") as refused:
        blue.scale("SCALE_IN")
    assert refused.value.status == 400
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 1


def test_a_refused_scale_deletes_nothing_although_the_inventory_is_new(cluster: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(cluster, tmp_path, [deployment(1)])
    cluster.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    cluster.fail(faults.field_conflict(), method="PATCH", path="deployments/web", times=9)
    with pytest.raises(sol_ex.SolException, match="others manage fields"):
        blue.scale("SCALE_OUT")
    assert cluster.names("Deployment") == ["web"]


def test_a_count_of_0_may_be_left_out_of_the_object(cluster: FakeApi, tmp_path: Path) -> None:
    """A webhook or a conversion in Go does so with `json:"replicas,omitempty"`."""
    crd, one = with_default(2)
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"]["default"]
    one["spec"]["replicas"] = 2
    blue = instantiated(cluster, tmp_path, [crd, one])

    def leave_out(live: dict[str, Any]) -> None:
        if live["spec"].get("replicas") == 0:
            cluster.edit("CronTab", "default", "web", lambda one: one["spec"].pop("replicas"), manager="")

    cluster.cluster.reactions.insert(0, ("CronTab", None, leave_out))
    blue.scale("SCALE_IN")


@pytest.mark.parametrize("manager", ["hpa", OURS])
def test_a_scale_whose_count_is_reset_fails_and_says_by_whom(cluster: FakeApi, tmp_path: Path, manager: str) -> None:
    """A webhook changes the count within the request, so its change is of the manager that has sent it."""
    blue = instantiated(cluster, tmp_path, [deployment(2)])

    def reset(live: dict[str, Any]) -> None:
        if live["spec"]["replicas"] > 2:
            cluster.edit("Deployment", "default", "web", lambda one: one["spec"].update(replicas=2), manager=manager)

    cluster.cluster.reactions.insert(0, ("Deployment", None, reset))
    who = "hpa" if manager == "hpa" else "an admission webhook"
    with pytest.raises(sol_ex.SolException, match=rf"web: Failed \(CountReset\): spec.replicas is 2 instead of 4: {who} has"):
        blue.scale("SCALE_OUT")


def test_rollback_of_scale_ignores_the_options_of_the_request(cluster: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(cluster, tmp_path, [deployment(1)])
    body = {"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 1, "additionalParams": {"wait-timeout": "soon"}}
    req = objects.ScaleVnfRequest.from_dict(body)
    with pytest.raises(sol_ex.SolException, match="wait-timeout"):
        Driver().scale(req, blue.inst, blue.grant_req, None, blue.vnfd)
    Driver().scale_rollback(req, blue.inst, blue.grant_req, None, blue.vnfd)
    assert blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]["spec"]["replicas"] == 1


def test_rollback_of_scale_with_a_vdu_that_is_not_part_of_the_instance(cluster: FakeApi, tmp_path: Path) -> None:
    """Which is why the scale was refused: its object is in a file that the instance was created without."""
    blue = Instance(cluster, tmp_path, [deployment(2)], vdus={"Web": "web", "Db": "db"}, aspects={"web": ["Web", "Db"]})
    (tmp_path / "Files/kubernetes/db.yaml").write_text(yaml.safe_dump(stateful_set("db")))
    blue.instantiate()
    with pytest.raises(sol_ex.SolException, match="VDU Db is not part of this instance"):
        blue.scale("SCALE_OUT")
    req = objects.ScaleVnfRequest.from_dict({"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 1})
    Driver().scale_rollback(req, blue.inst, blue.grant_req, None, blue.vnfd)
    assert len(vnfcs(blue)) == 2


def test_rollback_of_scale_leaves_the_count_to_the_autoscaler_that_owns_it(cluster: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(cluster, tmp_path, [deployment(1)])
    autoscaled = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    with Connection(Endpoint(cluster.url)) as connection:
        connection.request("PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale", body=autoscaled)
    req = objects.ScaleVnfRequest.from_dict({"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 2})
    with pytest.raises(sol_ex.SolException, match="others manage fields"):
        Driver().scale(req, blue.inst, blue.grant_req, None, blue.vnfd)
    Driver().scale_rollback(req, blue.inst, blue.grant_req, None, blue.vnfd)
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3


def test_scale_in_waits_until_the_surplus_pods_are_deleted(cluster: FakeApi, tab: Instance) -> None:
    def shrink(request: Request) -> bool:
        """The controller comes to it after one look before the scale and two after it. No fault."""
        if looks(cluster) == 3:
            cluster.edit("Deployment", "default", "web", lambda live: live["spec"].update(replicas=1))
        return False

    cluster.fail(faults.internal(), when=shrink)
    tab.scale("SCALE_IN")
    assert cluster.get("CronTab", "default", "tab")["spec"]["size"] == 1
    assert vnfcs(tab) == cluster.names("Pod", "default") and len(vnfcs(tab)) == 1


def test_surplus_pods_are_accepted_after_the_grace_time(
    cluster: FakeApi, tab: Instance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(surplus, "GRACE", 0.0)
    tab.scale("SCALE_IN")
    assert vnfcs(tab) == cluster.names("Pod", "default") and len(vnfcs(tab)) == 3
    assert "VDU Web has 3 VNFCs instead of 1; its status is trusted all the same" in caplog.text


def test_scale_out_does_not_count_pods_before(cluster: FakeApi, tab: Instance) -> None:
    tab.scale("SCALE_OUT")
    assert looks(cluster) == 2, "for the events while a status waits for its age, and to store the VNFCs"


@pytest.fixture
def workloads(api: FakeApi) -> FakeApi:
    """The fake API server with the controllers of workloads, which remove Pods as the real ones do."""
    controllers.run_workloads(api)
    return api


def pods(cluster: FakeApi) -> list[str]:
    return cluster.names("Pod", "default")


@pytest.mark.parametrize(
    ("requested", "granted", "loses_label"),
    [([0, 2], [0, 2], False), ([0, 2], None, False), ([0, 1, 2, 3], [0, 1], False), ([0, 1], [0, 1], True)],
    ids=["as requested", "by Tacker", "by the NFVO", "of an object without its label"],
)
def test_scale_in_removes_the_pods_of_a_deployment_that_are_granted_or_else_requested(
    workloads: FakeApi, tmp_path: Path, requested: list[int], granted: list[int] | None, loses_label: bool
) -> None:
    blue = instantiated(workloads, tmp_path, [deployment(4)])
    every = pods(workloads)
    if loses_label:
        replaced(workloads, "Deployment", "default", "web")
    named = None if granted is None else [every[place] for place in granted]
    blue.scale("SCALE_IN", requested=[every[place] for place in requested], granted=named)
    left = [name for place, name in enumerate(every) if place not in (requested if granted is None else granted)]
    assert pods(workloads) == left == vnfcs(blue)


def test_pods_that_an_earlier_scale_in_has_chosen_are_released(workloads: FakeApi, tmp_path: Path) -> None:
    """It may have failed after it had annotated them."""
    blue = instantiated(workloads, tmp_path, [deployment(4)])
    every = pods(workloads)
    workloads.fail(faults.field_conflict(), method="PATCH", path="deployments/web", when=lambda one: "dryRun" not in one.query)
    with pytest.raises(sol_ex.SolException, match="others manage fields"):
        blue.scale("SCALE_IN", requested=every[:2])
    blue.scale("SCALE_IN", requested=every[2:])
    assert pods(workloads) == every[:2]
    assert not any("pod-deletion-cost" in str(one["metadata"].get("annotations")) for one in workloads.objects("Pod"))


def test_a_scale_in_that_would_be_refused_annotates_nothing(workloads: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(workloads, tmp_path, [deployment(4)])
    workloads.fail(faults.field_conflict(), method="PATCH", path="deployments/web")
    with pytest.raises(sol_ex.SolException, match="others manage fields"):
        blue.scale("SCALE_IN", requested=pods(workloads)[:2])
    assert not any("pod-deletion-cost" in str(one["metadata"].get("annotations")) for one in workloads.objects("Pod"))


def with_ordinals(workloads: FakeApi, tmp_path: Path) -> Instance:
    blue = instantiated(workloads, tmp_path, [stateful_set("web", replicas=4, volumeClaimTemplates=[])])
    workloads.requests.clear()
    return blue


def test_a_stateful_set_that_cannot_remove_what_the_nfvo_has_chosen_is_not_scaled(workloads: FakeApi, tmp_path: Path) -> None:
    blue = with_ordinals(workloads, tmp_path)
    chosen = "the grant chooses web-0 of VDU Web, but StatefulSet.apps default/web can only remove web-3, web-2"
    with pytest.raises(sol_ex.SolException, match=chosen) as refused:
        blue.scale("SCALE_IN", requested=["web-0", "web-3"], granted=["web-0", "web-3"])
    assert refused.value.status == 400
    assert pods(workloads) == ["web-0", "web-1", "web-2", "web-3"]
    assert all("dryRun" in one.query for one in workloads.requests.select("PATCH", "statefulsets"))


def test_a_stateful_set_removes_its_highest_ordinals_if_the_nfvo_has_not_chosen(workloads: FakeApi, tmp_path: Path) -> None:
    blue = with_ordinals(workloads, tmp_path)
    blue.scale("SCALE_IN", requested=["web-0", "web-3"])
    assert pods(workloads) == ["web-0", "web-1"]


def test_the_highest_ordinals_of_a_stateful_set_are_the_first_that_tacker_names(workloads: FakeApi, tmp_path: Path) -> None:
    """Also if the Pod of another ordinal was created later."""
    blue = with_ordinals(workloads, tmp_path)
    workloads.edit("Pod", "default", "web-0", lambda live: live["metadata"].update(creationTimestamp="2099-01-01T00:00:00Z"))
    blue.scale("SCALE_OUT")
    found = [one.id for one in blue.inst.instantiatedVnfInfo.vnfcResourceInfo]
    assert found == [f"web-{ordinal}" for ordinal in (5, 4, 3, 2, 1, 0)]


@pytest.mark.parametrize("granted", [True, False])
@pytest.mark.parametrize(
    "fault",
    [faults.status(403, "Forbidden"), *(faults.denied("no annotations", code, "Conflict") for code in (403, 406, 409))],
    ids=["RBAC", "webhook 403", "webhook 406", "webhook 409"],
)
def test_where_pods_cannot_be_annotated_only_a_choice_of_the_nfvo_is_refused(
    workloads: FakeApi, tmp_path: Path, granted: bool, fault: faults.Answer
) -> None:
    blue = instantiated(workloads, tmp_path, [deployment(4)])
    chosen = pods(workloads)[:2]
    workloads.fail(fault, method="PATCH", path="/pods/", times=20)
    if granted:
        with pytest.raises(sol_ex.SolException, match=r"Pod default/\S+: cannot be annotated, so that a scale in removes it"):
            blue.scale("SCALE_IN", requested=chosen, granted=chosen)
    else:
        blue.scale("SCALE_IN", requested=chosen)
    assert len(pods(workloads)) == (4 if granted else 2)


def test_what_the_nfvo_grants_without_a_request_is_not_removed(workloads: FakeApi, tmp_path: Path) -> None:
    """The grant is another system's: a VNFC counts only if Tacker has requested it and the instance has it."""
    blue = instantiated(workloads, tmp_path, [deployment(4)])
    workloads.requests.clear()
    blue.scale("SCALE_IN", requested=["another"], granted=["another", pods(workloads)[0]])
    assert len(pods(workloads)) == 2
    assert not workloads.requests.select("PATCH", "/pods/")


def test_no_value_of_a_pod_is_in_the_error_of_a_webhook_that_refuses_to_have_it_annotated(
    cluster: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = deployment(5)
    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "DB", "value": "blue:kMi83jfWq0@db"}]
    blue = instantiated(cluster, tmp_path, [manifest])
    names = [one.id for one in blue.inst.instantiatedVnfInfo.vnfcResourceInfo][-2:]
    said = 'admission webhook "pods.example.com" denied the request: env DB=blue:kMi83jfWq0@db is not allowed'
    cluster.fail(faults.status(403, "Forbidden", said), method="PATCH", path="/pods/", times=9)
    with pytest.raises(sol_ex.SolException, match="cannot be annotated") as refused:
        blue.scale("SCALE_IN", requested=names, granted=names)
    assert "kMi83jfWq0" not in refused.value.detail + caplog.text


def test_a_default_level_whose_id_is_a_number_gives_its_count(cluster: FakeApi, tmp_path: Path) -> None:
    """YAML reads an id without quotes as a number. Tacker takes the scale levels from it, too."""
    instantiated(cluster, tmp_path, [deployment(1)], levels={1: 3, 2: 5})
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3


def test_a_level_whose_id_is_a_number_is_named_where_the_text_is_not_found(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)], levels={1: 3})
    with pytest.raises(sol_ex.SolException, match=r"no level '1'; its levels: 1 \(an integer: write it in quotes\)\."):
        blue.instantiate(level="1")


@pytest.mark.parametrize("targets", [None, "Web", [{"Web": 1}]])
def test_targets_of_a_level_that_are_no_list_of_vdus_are_refused(cluster: FakeApi, tmp_path: Path, targets: Any) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)], levels={"small": 3})
    [counts] = blue.vnfd.get_policy_values_by_type("simple", "tosca.policies.nfv.VduInstantiationLevels")
    counts["targets"] = targets
    with pytest.raises(sol_ex.SolException, match="VduInstantiationLevels of the VNFD: targets: must be a list") as refused:
        blue.instantiate()
    assert refused.value.status == 400
    assert cluster.requests.writes == []


def test_after_a_modify_of_the_vnfd_a_scale_is_refused(cluster: FakeApi, tmp_path: Path) -> None:
    """Tacker hands over the package that the instance names then, whose deltas are not those of the instance's levels."""
    blue = instantiated(cluster, tmp_path / "old", [deployment(1)])
    blue.vnfd = blue.package([deployment(1)], delta=4)
    blue.vnfd.vnfd_id = "other"
    with pytest.raises(sol_ex.SolException, match=r"vnfdId: a MODIFY has named 'other'.*change the current VNF package"):
        blue.scale("SCALE_OUT")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 1
