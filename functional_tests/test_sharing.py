"""Several instances on one cluster, and its users: what they share, and what is nobody's but its owner's."""

from collections.abc import Iterator

import pytest

from .cluster import CRDS, Cluster
from .conftest import MakeVnf
from .objects import GROUP, VERSION, Object, config_map, crd, custom, deployment, namespace
from .packages import Package
from .testbed.tacker import Conductor
from .vnf import Vnf

WIDGETS = f"widgets.{GROUP}"
MANY = 10

PACKAGE = Package(
    {
        "shared.yaml": [namespace("shared"), crd("Widget")],
        "left.yaml": custom("Widget", "left", "shared"),
        "right.yaml": custom("Widget", "right", "shared"),
        "theirs.yaml": [config_map("theirs", ours="1"), config_map("ours", ours="1")],
        "one-of-many.yaml": [
            namespace("${NAME}"),
            crd("Widget"),
            custom("Widget", "own", "${NAME}"),
            config_map("own", "${NAME}", a="1"),
            deployment("own", namespace="${NAME}"),
        ],
    },
    parameters={"NAME": {"type": "string", "required": False}},
)


@pytest.mark.parametrize("first_to_go", ["left", "right"])
def test_what_two_instances_share_goes_with_the_last_of_them(make_vnf: MakeVnf, cluster: Cluster, first_to_go: str):
    vnfs = {"left": make_vnf(), "right": make_vnf()}
    operations = [vnf.begin_instantiate("shared.yaml", f"{name}.yaml") for name, vnf in vnfs.items()]
    for vnf, operation in zip(vnfs.values(), operations, strict=True):
        vnf.wait(operation)
    vnfs.pop(first_to_go).terminate()
    [(name, last)] = vnfs.items()
    assert cluster.of(last.id) == [f"CustomResourceDefinition {WIDGETS}", "Namespace shared", f"Widget shared/{name}"]
    assert cluster.get("Widget", first_to_go, "shared", VERSION) is None
    last.terminate()
    assert cluster.get("Namespace", "shared") is None
    assert cluster.get("CustomResourceDefinition", WIDGETS, api_version=CRDS) is None


@pytest.fixture
def users_own(cluster: Cluster) -> Iterator[dict[str, Object]]:
    """A user's ConfigMap, Namespace and CRD."""
    made = [config_map("theirs", "default", theirs="1"), namespace("shared"), crd("Widget")]
    with cluster.holding(*made) as lives:
        yield {live["kind"]: live for live in lives}


def test_what_a_user_has_made_survives_everything(vnf: Vnf, cluster: Cluster, users_own: dict[str, Object]):
    files = ("shared.yaml", "left.yaml", "theirs.yaml")
    vnf.refusal(*files)
    assert survivors(cluster) == {kind: live["metadata"]["uid"] for kind, live in users_own.items()}


def test_what_is_adopted_is_left_behind(vnf: Vnf, cluster: Cluster, users_own: dict[str, Object]):
    vnf.instantiate("shared.yaml", "left.yaml", "theirs.yaml", adopt_existing=True)
    adopted = cluster.get("ConfigMap", "theirs", "default")
    assert adopted is not None and adopted["data"] == {"ours": "1", "theirs": "1"}
    vnf.terminate()
    assert survivors(cluster) == {kind: live["metadata"]["uid"] for kind, live in users_own.items()}
    left = cluster.get("ConfigMap", "theirs", "default")
    assert left is not None and left["data"] == {"theirs": "1"}
    assert cluster.get("ConfigMap", "ours", "default") is None


def survivors(cluster: Cluster) -> dict[str, str]:
    found = {
        "ConfigMap": cluster.get("ConfigMap", "theirs", "default"),
        "Namespace": cluster.get("Namespace", "shared"),
        "CustomResourceDefinition": cluster.get("CustomResourceDefinition", WIDGETS, api_version=CRDS),
    }
    return {kind: live["metadata"]["uid"] for kind, live in found.items() if live}


def test_ten_instances_at_once_over_two_conductors(
    make_vnf: MakeVnf, cluster: Cluster, conductors: dict[str, Conductor]
):
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
    for conductor in conductors.values():
        log = conductor.log.read_text()
        done = [vnf.id for vnf in vnfs.values() if f"instantiate of VNF instance {vnf.id} was done" in log]
        assert done, f"{conductor.name} had nothing to do"
    endings = [(vnf, vnf.begin_terminate()) for vnf in vnfs.values()]
    for vnf, operation in endings:
        vnf.wait(operation)
    assert cluster.leftovers([vnf.id for vnf in vnfs.values()]) == []
