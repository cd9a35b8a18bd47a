# SPDX-License-Identifier: Apache-2.0
"""Whose an object is when a user has created it again or copied it, and when its author wants it kept."""

import pytest

from ..cluster import INSTANCE, Cluster
from ..objects import Object, Place, annotated, config_map
from ..packages import Package
from ..vnf import Vnf

PLACE = Place("ownership")

PACKAGE = Package(
    {
        "all.yaml": [config_map("settings", a="1"), annotated(config_map("archive", a="1"), keep="true")],
        "settings.yaml": config_map("settings", a="1"),
        "other.yaml": config_map("other", a="1"),
        "more.yaml": [config_map("settings", a="1"), config_map("copy", a="1")],
    }
)


def replace_by_force(cluster: Cluster, name: str) -> Object:
    """As `kubectl get --output=yaml | kubectl replace --force` does: the same labels, another uid, nobody's fields."""
    live = cluster.get("ConfigMap", name, PLACE.name)
    assert live is not None
    cluster.delete("ConfigMap", name, PLACE.name)
    metadata = {field: live["metadata"][field] for field in ("name", "namespace", "labels")}
    return cluster.create({**live, "metadata": metadata})


def test_terminate_deletes_what_a_user_has_replaced_by_force(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("settings.yaml")
    again = replace_by_force(cluster, "settings")
    assert again["metadata"]["labels"][INSTANCE] == vnf.id
    vnf.terminate()
    assert cluster.get("ConfigMap", "settings", PLACE.name) is None


def test_a_change_of_package_deletes_what_a_user_has_replaced_by_force(vnf: Vnf, cluster: Cluster, package: str):
    vnf.instantiate("settings.yaml")
    replace_by_force(cluster, "settings")
    vnf.change(package, "other.yaml")
    assert cluster.of(vnf.id) == [f"ConfigMap {PLACE.name}/other"]


@pytest.mark.parametrize("copied", [("labels", "annotations", "managedFields"), ("labels",)], ids=["restored", "exported"])
def test_a_copy_of_an_object_under_a_name_that_the_next_package_brings_stays(
    vnf: Vnf, cluster: Cluster, package: str, copied: tuple[str, ...]
):
    vnf.instantiate("settings.yaml")
    live = cluster.get("ConfigMap", "settings", PLACE.name)
    assert live is not None
    marks = {field: live["metadata"][field] for field in copied if field in live["metadata"]}
    with cluster.holding({**live, "metadata": {**marks, "name": "copy", "namespace": PLACE.name}}) as [copy]:
        assert copy["metadata"]["labels"][INSTANCE] == vnf.id
        operation = vnf.begin_change(package, "more.yaml")
        assert f"ConfigMap {PLACE.name}/copy exists already" in vnf.failure(operation)["detail"]
        vnf.roll_back(operation)
        vnf.terminate()
        after = cluster.get("ConfigMap", "copy", PLACE.name)
        assert after
        assert (after["metadata"]["uid"], after["data"]) == (copy["metadata"]["uid"], live["data"])


def test_terminate_leaves_what_is_to_be_kept(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("all.yaml")
    before = cluster.get("ConfigMap", "archive", PLACE.name)
    vnf.terminate()
    assert is_kept(cluster, before)


def test_a_change_of_package_leaves_what_is_to_be_kept(vnf: Vnf, cluster: Cluster, package: str):
    vnf.instantiate("all.yaml")
    before = cluster.get("ConfigMap", "archive", PLACE.name)
    vnf.change(package, "settings.yaml")
    assert is_kept(cluster, before)
    assert cluster.of(vnf.id) == [f"ConfigMap {PLACE.name}/settings"]


def is_kept(cluster: Cluster, before: Object | None) -> bool:
    """It is the same object with the same data, and no instance's any more."""
    after = cluster.get("ConfigMap", "archive", PLACE.name)
    assert before and after
    assert (after["metadata"]["uid"], after["data"]) == (before["metadata"]["uid"], before["data"])
    cluster.delete("ConfigMap", "archive", PLACE.name)
    return INSTANCE not in after["metadata"].get("labels", {})
