# SPDX-License-Identifier: Apache-2.0
"""Change of the current VNF package and its rollback: the set of the new package, and of the old one again."""

from __future__ import annotations

import copy
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm import desired
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object, ObjectKey
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, config_map, crontab, crontab_crd, obj, state
from tests.lcm.instance import Instance, instantiated, make_vnfd
from tests.lcm.web import deployment, selecting

COUNT = {"COUNT": {"type": "integer", "default": 1}, "NAME": {"type": "string", "default": "a"}}


@pytest.fixture
def web(cluster: FakeApi, tmp_path: Path) -> Instance:
    return instantiated(cluster, tmp_path / "old", [deployment(1), config_map("kept"), config_map("dropped")])


@pytest.fixture
def sized(cluster: FakeApi, tmp_path: Path) -> Instance:
    """Its parameters are a count and a text."""
    manifests = [deployment("${COUNT}"), config_map("settings", mode="${NAME}")]
    sized = Instance(cluster, tmp_path / "old", manifests, parameters=COUNT)
    sized.instantiate(parameters={"COUNT": 2, "NAME": "b"})
    return sized


def replicas(api: FakeApi, name: str = "web") -> int:
    return int(api.get("Deployment", "default", name)["spec"]["replicas"])


def maps(api: FakeApi) -> set[str]:
    return set(api.names("ConfigMap")) - {f"k8s-cr-driver-{BLUE}"}


def test_it_adds_changes_and_prunes_and_keeps_the_count(cluster: FakeApi, web: Instance) -> None:
    web.scale("SCALE_OUT")
    web.change(web.package([deployment(1), config_map("kept", x="2"), config_map("added")]))
    assert maps(cluster) == {"kept", "added"}
    assert cluster.get("ConfigMap", "default", "kept")["data"] == {"x": "2"}
    assert replicas(cluster) == 3
    assert web.inst.vnfdId == "new"


def test_a_parameter_that_is_not_given_and_a_count_stay(cluster: FakeApi, sized: Instance) -> None:
    sized.scale("SCALE_OUT")
    sized.change(sized.vnfd, parameters={"NAME": "c"})
    assert replicas(cluster) == 4
    assert cluster.get("ConfigMap", "default", "settings")["data"] == {"mode": "c"}
    sized.change(sized.vnfd)
    assert cluster.get("ConfigMap", "default", "settings")["data"] == {"mode": "c"}


def test_a_count_from_a_given_parameter_is_applied(cluster: FakeApi, sized: Instance) -> None:
    sized.scale("SCALE_OUT")
    sized.change(sized.vnfd, parameters={"COUNT": 3})
    assert replicas(cluster) == 3
    sized.scale("SCALE_OUT")
    assert replicas(cluster) == 5


def test_a_count_from_a_parameter_that_had_its_default_is_applied(cluster: FakeApi, tmp_path: Path) -> None:
    sized = instantiated(cluster, tmp_path, [deployment("${COUNT}")], parameters=COUNT)
    sized.change(sized.vnfd, parameters={"COUNT": 3})
    assert replicas(cluster) == 3
    sized.scale("SCALE_OUT")
    sized.change(sized.vnfd, parameters={"COUNT": 3})
    assert replicas(cluster) == 5, "the parameter is the same as before"


def test_a_parameter_that_the_new_package_needs_can_be_given(cluster: FakeApi, sized: Instance) -> None:
    manifests = [deployment("${COUNT}"), config_map("settings", mode="${OTHER}")]
    new = sized.package(manifests, parameters={"COUNT": COUNT["COUNT"], "OTHER": {"type": "string"}})
    sized.change(new, parameters={"OTHER": "d"})
    assert replicas(cluster) == 2
    assert cluster.get("ConfigMap", "default", "settings")["data"] == {"mode": "d"}


def test_a_vdu_by_another_name_is_the_same_object_with_its_count(cluster: FakeApi, web: Instance) -> None:
    web.scale("SCALE_OUT")
    web.change(web.package([deployment(1)], vdus={"Site": "web"}))
    assert replicas(cluster) == 3
    info = web.inst.instantiatedVnfInfo
    assert set(info.metadata["vdu_reses"]) == {"Site"}
    assert {vnfc.vduId for vnfc in info.vnfcResourceInfo} == {"Site"}


@pytest.mark.parametrize("verb", ["change", "rollback"])
def test_a_count_that_nothing_names_stays_with_its_controller(cluster: FakeApi, tmp_path: Path, verb: str) -> None:
    """Which takes it for 3 here."""
    cluster.put(deployment(3))
    crd, tab = selecting(cluster, 3)
    del tab["spec"]["size"]
    blue = instantiated(cluster, tmp_path, [crd, tab])
    if verb == "change":
        blue.change(blue.vnfd)
    else:
        blue.roll_back_change()
    assert "size" not in cluster.get("CronTab", "default", "tab")["spec"]
    assert len(blue.inst.instantiatedVnfInfo.vnfcResourceInfo) == 3
    with pytest.raises(sol_ex.SolException, match=r"spec\.size: names no count"):
        blue.scale("SCALE_OUT")


def test_rollback_restores_the_former_set(cluster: FakeApi, web: Instance) -> None:
    stored = web.inst.obj_clone()
    broken = crontab_crd(phase={"type": "string"})
    new = web.package([deployment(1), config_map("added"), broken, crontab("never-ready")])
    with pytest.raises(sol_ex.SolException, match=r"CronTab.stable.example.com default/never-ready: Waiting"):
        web.change(new, **{"wait-timeout": 2})
    web.inst = stored  # Tacker saves the instance only after success
    web.roll_back_change()
    assert maps(cluster) == {"kept", "dropped"}
    assert cluster.names("CustomResourceDefinition") == []


def test_rollback_to_another_package_than_the_last_one_is_refused(cluster: FakeApi, web: Instance, tmp_path: Path) -> None:
    """A MODIFY of vnfdId, which is no verb of a driver: Tacker gives a rollback the package that the instance then names."""
    with pytest.raises(sol_ex.SolException, match="no such file"):
        web.change(web.package([deployment(1)]), **{"lcm-kubernetes-def-files": ["Files/none.yaml"]})
    old, web.vnfd = web.vnfd, make_vnfd(tmp_path / "other", [deployment(1), config_map("other")])
    web.vnfd.vnfd_id = "other"
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"vnfdId: .* named 'other', but the objects are those of 'vnfd'"):
        web.roll_back_change()
    assert len(cluster.requests) == 0
    web.change(web.vnfd)
    web.roll_back_change()
    assert maps(cluster) == {"other"}
    web.change(old)
    assert maps(cluster) == {"kept", "dropped"}


def test_rollback_takes_over_what_others_have_set(cluster: FakeApi, web: Instance, caplog: pytest.LogCaptureFixture) -> None:
    before = cluster.get("ConfigMap", "default", "kept")["data"]
    stored = web.inst.obj_clone()
    cluster.edit("ConfigMap", "default", "kept", lambda live: live["data"].update(a="theirs"), manager="kubectl-edit")
    with pytest.raises(sol_ex.SolException, match=r"kept: others manage fields.*kubectl-edit"):
        web.change(web.package([deployment(1), config_map("kept", a="2"), config_map("added")]))
    web.inst = stored
    with caplog.at_level(logging.WARNING):
        web.roll_back_change()
    assert cluster.get("ConfigMap", "default", "kept")["data"] == before
    assert "ConfigMap default/kept" in caplog.text and "kubectl-edit" in caplog.text
    assert maps(cluster) == {"kept", "dropped"}


def test_rollback_restores_every_field_with_the_counts_and_parameters_of_before(cluster: FakeApi, sized: Instance) -> None:
    sized.scale("SCALE_OUT")
    before, stored = without_pods(cluster), sized.inst.obj_clone()
    last = crontab("refused")
    last["metadata"]["annotations"] = {
        DEPENDS_ON: "apps/namespaces/default/Deployment/web, /namespaces/blue/ConfigMap/added, /namespaces/default/Secret/login"
    }
    cluster.fail(faults.status(400, "BadRequest", "no"), path="/crontabs/refused")
    manifests = [
        deployment("${COUNT}"),
        config_map("settings", mode="new", more="${NAME}"),
        obj("v1", "Namespace", "blue"),
        config_map("added", "blue"),
        obj("v1", "Secret", "login", "default", stringData={"a": "b"}),
        crontab_crd(phase={"type": "string"}),
        last,
    ]
    with pytest.raises(sol_ex.SolException, match="default/refused: no"):
        sized.change(sized.package(manifests, parameters=COUNT), parameters={"COUNT": 3})
    assert replicas(cluster) == 3
    sized.inst = stored
    sized.roll_back_change()
    assert without_pods(cluster) == before
    assert sized.inst.instantiatedVnfInfo.metadata["k8s_cr"]["parameters"] == {"COUNT": 2, "NAME": "b"}


def test_options_stay_and_a_later_request_overrides_them(cluster: FakeApi, tmp_path: Path) -> None:
    web = Instance(cluster, tmp_path, [deployment(1), config_map("a")])
    web.instantiate(**{"wait-timeout": 50})
    web.change(web.vnfd, **{"wait-timeout": 40})
    web.change(web.vnfd, **{"wait-timeout": None})
    assert kept(web, "wait-timeout") == 40


def test_force_conflicts_and_adopt_existing_hold_for_one_request(cluster: FakeApi, tmp_path: Path) -> None:
    def drift() -> None:
        cluster.edit("ConfigMap", "default", "a", lambda live: live["data"].update(a="drifted"), manager="kubectl-edit")

    web = Instance(cluster, tmp_path, [deployment(1), config_map("a")])
    web.instantiate(**{"force-conflicts": True, "adopt-existing": True})
    assert [kept(web, key) for key in ("force-conflicts", "adopt-existing")] == [None, None]
    web.inst.instantiatedVnfInfo.metadata["k8s_cr"]["force-conflicts"] = True  # as the first form of the record has it
    drift()
    with pytest.raises(sol_ex.SolException, match="kubectl-edit"):
        web.heal()
    web.heal(**{"force-conflicts": True})
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"a": "1"}
    drift()
    with pytest.raises(sol_ex.SolException, match="kubectl-edit"):
        web.change(web.vnfd)


def test_rollback_makes_again_what_only_the_new_package_allows_to_replace(
    cluster: FakeApi, web: Instance, tmp_path: Path
) -> None:
    old = Instance(cluster, tmp_path / "frozen", [deployment(1), {**config_map("kept"), "immutable": True}])
    old.inst = web.inst
    old.change(old.vnfd)
    stored = old.inst.obj_clone()
    replaced = {**config_map("kept", a="2"), "immutable": True}
    replaced["metadata"]["annotations"] = {"k8s-cr-driver/replace": "true"}
    old.change(old.package([deployment(1), replaced]))
    assert cluster.get("ConfigMap", "default", "kept")["data"] == {"a": "2"}
    old.inst = stored
    old.roll_back_change()
    assert cluster.get("ConfigMap", "default", "kept")["data"] == {"a": "1"}


def test_a_package_without_the_flavour_of_the_instance_is_refused(web: Instance) -> None:
    with pytest.raises(sol_ex.SolException, match="no flavour 'simple'"):
        web.change(web.package([deployment(1)], flavour="other"))


def test_new_scaling_aspects_are_stored_for_the_synchronization(web: Instance) -> None:
    new = web.package([deployment(1)], aspects={"web": ["Web"], "more": ["Web"]})
    web.inst.instantiatedVnfInfo.scaleStatus = [objects.ScaleInfoV2(aspectId="web", scaleLevel=0)]
    web.change(new)
    assert kept_aspects(web) == ["more"]
    web.change(web.package([deployment(1)]))
    assert kept_aspects(web) is None


MALFORMED: list[dict[str, Any]] = [
    {},
    {"aspects": None},
    {"aspects": ["web"]},
    {"aspects": {"web": {"step_deltas": ["one"]}}},
    {"aspects": {"web": None, 1: {"max_scale_level": 1}}},
]


@pytest.mark.parametrize("properties", MALFORMED)
def test_malformed_scaling_aspects_do_not_fail_a_change_that_is_done(
    cluster: FakeApi, web: Instance, properties: dict[str, Any]
) -> None:
    web.inst.instantiatedVnfInfo.maxScaleLevels = [objects.ScaleInfoV2(aspectId="web", scaleLevel=5)]
    new = web.package([deployment(1), config_map("added")])
    [aspects] = new.get_policy_values_by_type("simple", "tosca.policies.nfv.ScalingAspects")
    aspects["properties"] = properties
    web.change(new)
    assert maps(cluster) == {"added"}
    assert kept_aspects(web) is None


def without_pods(api: FakeApi) -> dict[ObjectKey, Object]:
    """All that is there, but for what has other names each time."""
    return {key: live for key, live in state(api).items() if key.kind != "Pod"}


def kept_aspects(instance: Instance) -> Any:
    return kept(instance, "new-scaling-aspects")


def kept(instance: Instance, key: str) -> Any:
    return instance.inst.instantiatedVnfInfo.metadata["k8s_cr"].get(key)


@pytest.mark.parametrize("verb", ["instantiate", "change"])
def test_manifests_without_an_object_are_refused(cluster: FakeApi, tmp_path: Path, web: Instance, verb: str) -> None:
    """They would be a terminate, which deletes the volume claims of StatefulSets."""
    new = make_vnfd(tmp_path / "new", [deployment(1)])
    (tmp_path / "new" / "Files" / "kubernetes" / "none.yaml").write_text("# nothing\n---\n# nor here\n")
    before, files = state(cluster), ["Files/kubernetes/none.yaml"]
    with pytest.raises(sol_ex.SolException, match=r"none\.yaml: no object is written there"):
        if verb == "change":
            web.change(new, **{"lcm-kubernetes-def-files": files})
        else:
            web.vnfd = new
            web.instantiate(**{"lcm-kubernetes-def-files": files})
    assert state(cluster) == before


def test_parameters_may_name_what_the_former_ones_could_not(cluster: FakeApi, tmp_path: Path) -> None:
    parameters = {"NAME": {"type": "string"}}
    blue = Instance(cluster, tmp_path / "old", [deployment(1), config_map("a", text="${NAME}")], parameters=parameters)
    blue.instantiate(parameters={"NAME": "No_Name"})
    new = blue.package([deployment(1), config_map("${NAME}")], parameters=parameters)
    blue.change(new, parameters={"NAME": "right"})
    assert cluster.find("ConfigMap", "default", "right")


NUMBER, TEXT, FREE = {"type": "integer"}, {"type": "string"}, {"type": "integer", "required": False}
LIMITED = {"type": "integer", "default": 3, "constraints": [{"in_range": [3, 5]}]}


def sizes(count: Any, *more: Object, given: dict[str, Any], **declared: Object) -> tuple[list[Object], Object, Object]:
    """The objects of a package, its parameters, and what a request gives for them."""
    return [deployment(count), *more], declared, {"parameters": given} if given else {}


def port() -> Object:
    return config_map("a", port="${PORT}")


AS_BEFORE = sizes("${COUNT:=1}", COUNT=FREE, given={})


@pytest.mark.parametrize(
    ("old", "new", "scaled", "count"),
    [
        (sizes("${COUNT}", COUNT=NUMBER, given={"COUNT": 2}), sizes("${COUNT}", COUNT=LIMITED, given={"COUNT": 4}), False, 4),
        *(
            (
                sizes("${COUNT}", port(), COUNT=NUMBER, PORT=TEXT, given={"COUNT": 1, "PORT": "80"}),
                sizes("${COUNT}", port(), COUNT=NUMBER, PORT={**NUMBER, **default}, given={"COUNT": 3, "PORT": 8080}),
                False,
                3,
            )
            for default in ({}, {"default": 80})
        ),
        (sizes(1, given={}), sizes("${COUNT}", COUNT=FREE, given={"COUNT": 3}), False, 3),
        (sizes(1, given={}), sizes("${COUNT:=1}", COUNT=FREE, given={"COUNT": 3}), False, 3),
        (
            sizes(1, config_map("a", count="${COUNT}"), COUNT=TEXT, given={"COUNT": "1"}),
            sizes("${COUNT}", config_map("a", count="${COUNT}"), COUNT=NUMBER, given={"COUNT": 3}),
            False,
            3,
        ),
        (
            sizes(1, given={}),
            sizes("${COUNT}", config_map("a-2"), config_map("a-${COUNT}"), COUNT=FREE, given={"COUNT": 3}),
            False,
            3,
        ),
        (AS_BEFORE, sizes("${COUNT:=1}", COUNT=FREE, given={"COUNT": 1}), True, 3),
        *(
            (AS_BEFORE, sizes("${COUNT:=1}", config_map("a", x=text), COUNT=FREE, SIZE=size, given=given), True, count)
            for text, size, given, count in (
                ("${SIZE}", NUMBER, {"COUNT": 1, "SIZE": 5}, 3),
                ("${SIZE}", FREE, {"COUNT": 1, "SIZE": 5}, 3),
                ("${SIZE:=}", FREE, {"COUNT": 4, "SIZE": 5}, 4),
            )
        ),
    ],
    ids=[
        "the new package forbids the former",
        *("another parameter has another type", "and a default"),
        *("the parameter is new", "and the reference has a default"),
        "the parameter was a text",
        "another number in its place is wrong",
        "the same as the default of the reference",
        *("beside a parameter that must be given", "beside a reference without default", "beside a default that is wrong"),
    ],
)
def test_a_given_count_is_the_new_one_unless_it_is_what_the_package_had(
    cluster: FakeApi, tmp_path: Path, old: Any, new: Any, scaled: bool, count: int
) -> None:
    """Then what a scale has made of it stays. A default in a reference counts as a declared one."""
    (before, declared, given), (after, declared_now, given_now) = copy.deepcopy((old, new))
    blue = Instance(cluster, tmp_path / "old", before, parameters=declared)
    blue.instantiate(**given)
    if scaled:
        blue.scale("SCALE_OUT")
    blue.change(blue.package(after, parameters=declared_now), **given_now)
    assert replicas(cluster) == count


def test_a_change_reads_a_url_once_whose_content_may_differ_at_a_second_look(
    cluster: FakeApi, sized: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objects are needed with the given parameters, and with the former ones."""
    contents = [[config_map("a")], [config_map("a"), config_map("b")]]

    def read(url: str) -> bytes:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": contents.pop(0)}).encode()

    monkeypatch.setattr(desired, "RemoteManifests", lambda _: read)
    files = ["Files/kubernetes/all.yaml", "https://example.com/a.json"]
    sized.change(sized.vnfd, parameters={"NAME": "c"}, **{"lcm-kubernetes-def-files": files})
    assert maps(cluster) == {"a", "settings"}


@pytest.mark.parametrize("targets", ["Web", ["Web", 1]])
def test_a_rollback_accepts_targets_that_earlier_versions_have_accepted(cluster: FakeApi, tmp_path: Path, targets: Any) -> None:
    """The package was instantiated with an earlier version."""
    blue = instantiated(cluster, tmp_path, [deployment(1)], levels={"small": 1})
    [counts] = blue.vnfd.get_policy_values_by_type("simple", "tosca.policies.nfv.VduInstantiationLevels")
    counts["targets"] = targets
    blue.roll_back_change()
    assert replicas(cluster) == 1


@pytest.mark.parametrize("verb", ["heal", "scale", "terminate"])
def test_only_a_change_changes_parameters(cluster: FakeApi, sized: Instance, verb: str) -> None:
    """They would hold for some of the objects, and until the next heal."""
    steps = ["SCALE_OUT"] if verb == "scale" else []
    with pytest.raises(sol_ex.SolException, match=r"only a change of the VNF package can change them; leave out COUNT, OTHER$"):
        getattr(sized, verb)(*steps, parameters={"COUNT": 5, "OTHER": 1, "NAME": "b"})
    assert replicas(cluster) == 2
