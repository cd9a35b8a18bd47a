# SPDX-License-Identifier: Apache-2.0
"""Whose an object is when a user has created it again, and when its author wants it kept."""

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
