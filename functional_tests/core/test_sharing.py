# SPDX-License-Identifier: Apache-2.0
"""Several instances on one cluster, and its users: what they share, and what is nobody's but its owner's."""

from collections.abc import Iterator

import pytest

from ..cluster import CRDS, Cluster
from ..conftest import Logged, MakeVnf, Onboard
from ..objects import Object, Place, config_map, deployment, namespace
from ..packages import Package
from ..testbed.tacker import CONDUCTORS
from ..vnf import Vnf

PLACE = Place("sharing")

WIDGETS = f"widgets.{PLACE.group}"
MANY = 10

PACKAGE = Package(
    {
        "shared.yaml": [namespace("shared"), PLACE.crd("Widget")],
        "left.yaml": PLACE.custom("Widget", "left", "shared"),
        "right.yaml": PLACE.custom("Widget", "right", "shared", size=1),
        "theirs.yaml": [config_map("theirs", ours="1"), config_map("ours", ours="1")],
        "one-of-many.yaml": [
            namespace("${NAME}"),
            PLACE.crd("Widget"),
            PLACE.custom("Widget", "own", "${NAME}"),
            config_map("own", "${NAME}", a="1"),
            deployment("own", namespace="${NAME}"),
        ],
    },
    parameters={"NAME": {"type": "string", "required": False}},
)


def widgets(**properties: Object) -> Package:
    """Another package of the instance `left`, whose CRD has these properties beside those of `PACKAGE`, or instead."""
    crd = PLACE.crd("Widget")
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] |= properties
    return Package({"new.yaml": [namespace("shared"), crd, PLACE.custom("Widget", "left", "shared")]})


@pytest.mark.parametrize("first_to_go", ["left", "right"])
def test_what_two_instances_share_goes_with_the_last_of_them(make_vnf: MakeVnf, cluster: Cluster, first_to_go: str):
    vnfs = {"left": make_vnf(), "right": make_vnf()}
    operations = [vnf.begin_instantiate("shared.yaml", f"{name}.yaml") for name, vnf in vnfs.items()]
    for vnf, operation in zip(vnfs.values(), operations, strict=True):
        vnf.wait(operation)
    vnfs.pop(first_to_go).terminate()
    [(name, last)] = vnfs.items()
    assert cluster.of(last.id) == [f"CustomResourceDefinition {WIDGETS}", "Namespace shared", f"Widget shared/{name}"]
    assert cluster.get("Widget", first_to_go, "shared", PLACE.version) is None
    last.terminate()
    assert cluster.get("Namespace", "shared") is None
    assert cluster.get("CustomResourceDefinition", WIDGETS, api_version=CRDS) is None


def test_a_change_of_a_shared_crd_takes_nothing_from_the_other_instance(
    make_vnf: MakeVnf, onboard: Onboard, cluster: Cluster
):
    ours, theirs = make_vnf(), make_vnf()
    ours.instantiate("shared.yaml", "left.yaml")
    theirs.instantiate("shared.yaml", "right.yaml")
    narrower = ours.begin_change(onboard(widgets(spec={"type": "object"})), "new.yaml")
    assert f"Widget.{PLACE.group} shared/right would lose spec.size" in ours.failure(narrower)["detail"]
    ours.roll_back(narrower)
    ours.change(onboard(widgets(extra={"type": "string"})), "new.yaml")
    theirs.heal()
    live = cluster.get("Widget", "right", "shared", PLACE.version)
    assert live is not None and live["spec"] == {"size": 1}


@pytest.fixture
def users_own(cluster: Cluster) -> Iterator[dict[str, Object]]:
    """A user's ConfigMap, Namespace and CRD."""
    made = [config_map("theirs", PLACE.name, theirs="1"), namespace("shared"), PLACE.crd("Widget")]
    with cluster.holding(*made) as lives:
        yield {live["kind"]: live for live in lives}


def test_what_a_user_has_made_survives_everything(vnf: Vnf, cluster: Cluster, users_own: dict[str, Object]):
    files = ("shared.yaml", "left.yaml", "theirs.yaml")
    vnf.refusal(*files)
    assert survivors(cluster) == {kind: live["metadata"]["uid"] for kind, live in users_own.items()}


def test_what_is_adopted_is_left_behind(vnf: Vnf, cluster: Cluster, users_own: dict[str, Object]):
    vnf.instantiate("shared.yaml", "left.yaml", "theirs.yaml", adopt_existing=True)
    adopted = cluster.get("ConfigMap", "theirs", PLACE.name)
    assert adopted is not None and adopted["data"] == {"ours": "1", "theirs": "1"}
    vnf.terminate()
    assert survivors(cluster) == {kind: live["metadata"]["uid"] for kind, live in users_own.items()}
    left = cluster.get("ConfigMap", "theirs", PLACE.name)
    assert left is not None and left["data"] == {"theirs": "1"}
    assert cluster.get("ConfigMap", "ours", PLACE.name) is None


def survivors(cluster: Cluster) -> dict[str, str]:
    found = {
        "ConfigMap": cluster.get("ConfigMap", "theirs", PLACE.name),
        "Namespace": cluster.get("Namespace", "shared"),
        "CustomResourceDefinition": cluster.get("CustomResourceDefinition", WIDGETS, api_version=CRDS),
    }
    return {kind: live["metadata"]["uid"] for kind, live in found.items() if live}


def test_ten_instances_at_once_over_two_conductors(make_vnf: MakeVnf, cluster: Cluster, logged: Logged):
    vnfs = {f"many-{number}": make_vnf() for number in range(MANY)}
    operations = {
        name: vnf.begin_instantiate("one-of-many.yaml", parameters={"NAME": name}) for name, vnf in vnfs.items()
    }
    for name, vnf in vnfs.items():
        vnf.wait(operations[name])
    for name, vnf in vnfs.items():
        assert cluster.of(vnf.id) == [
            f"ConfigMap {name}/own", f"CustomResourceDefinition {WIDGETS}", f"Deployment {name}/own", f"Namespace {name}",
            f"Widget {name}/own",
        ]  # fmt: skip
    busy = {name for vnf in vnfs.values() for name in logged(f"instantiate of VNF instance {vnf.id} completed in")}
    assert busy == set(CONDUCTORS)
    endings = [(vnf, vnf.begin_terminate()) for vnf in vnfs.values()]
    for vnf, operation in endings:
        vnf.wait(operation)
    assert cluster.leftovers([vnf.id for vnf in vnfs.values()]) == []
