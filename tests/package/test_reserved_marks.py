# SPDX-License-Identifier: Apache-2.0
"""What only the driver may say of an object is refused in manifests, with the field that says it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.capi.cluster import UNREACHABLE
from k8s_cr_driver.capi.control_plane import EXTERNAL_ETCD
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.journal.inventory import INVENTORY_LABEL
from k8s_cr_driver.journal.stored_form import InventoryContent, form
from k8s_cr_driver.objects import marks
from k8s_cr_driver.objects.immutable import REPLACE
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object
from k8s_cr_driver.objects.marks import OPTIONAL, SHARED
from k8s_cr_driver.objects.rule_texts import FAILED_WHEN, IGNORE_GENERATION, NO_ACTIVITY, READY_WHEN, SUSPENDED_WHEN
from k8s_cr_driver.package import manifests, reserved_marks
from k8s_cr_driver.vnf.vdus import VDU
from tests.instance import BLUE, config_map, crontab_crd, deployment, obj

MADE, KEEPS = marks.CREATED_BY_US, f"{marks.KEEPS}/{BLUE}"
WRITTEN = [*form(InventoryContent())["annotations"], MADE, f"{MADE}-2", KEEPS]
LABELS = [marks.INSTANCE_LABEL, marks.PART_OF_LABEL, marks.used_by(BLUE), INVENTORY_LABEL, "applyset.kubernetes.io/id"]


def loaded(root: Path, manifest: Object) -> list[Object]:
    (root / "all.yaml").write_text(yaml.safe_dump(manifest))
    return manifests.load(root, ["all.yaml"])


def with_metadata(manifest: Object, **metadata: Any) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], **metadata}}


@pytest.mark.parametrize("mark", [*WRITTEN, "k8s-cr-driver/adopted", "applyset.kubernetes.io/x"])
def test_annotations_that_the_driver_writes_are_refused(tmp_path: Path, mark: str) -> None:
    with pytest.raises(InvalidPackage, match=rf"all.yaml, document 1, ConfigMap .*a: metadata.annotations: {mark} .*remove"):
        loaded(tmp_path, with_metadata(config_map("a"), annotations={mark: "true"}))


@pytest.mark.parametrize(
    ("written", "meant"),
    [("readywhen", READY_WHEN), ("Ready-When", READY_WHEN), ("fail-when", FAILED_WHEN), ("suspend-when", SUSPENDED_WHEN)],
)
def test_annotation_of_authors_that_is_misspelt_is_named(tmp_path: Path, written: str, meant: str) -> None:
    with pytest.raises(InvalidPackage, match=rf"annotations: k8s-cr-driver/{written} is unknown; write {meant}"):
        loaded(tmp_path, with_metadata(config_map("a"), annotations={f"k8s-cr-driver/{written}": "stored"}))


@pytest.mark.parametrize("mark", LABELS)
@pytest.mark.parametrize("manifest", [config_map("a"), obj("v1", "Namespace", "blue"), crontab_crd()])
def test_labels_that_the_driver_writes_are_refused(tmp_path: Path, manifest: Object, mark: str) -> None:
    with pytest.raises(InvalidPackage, match=rf"metadata.labels: {mark} is a mark that only the driver may set"):
        loaded(tmp_path, with_metadata(manifest, labels={mark: BLUE}))


def test_a_mark_in_a_template_is_refused_with_its_field(tmp_path: Path) -> None:
    manifest = deployment("web")
    manifest["spec"]["template"]["metadata"]["labels"] = {marks.INSTANCE_LABEL: BLUE}
    with pytest.raises(InvalidPackage, match=r"spec.template.metadata.labels: tacker_vnf_instance_id"):
        loaded(tmp_path, manifest)
    nested = obj("example.com/v1", "Bundle", "a", spec={"objects": [with_metadata(config_map("b"), labels={LABELS[1]: ""})]})
    with pytest.raises(InvalidPackage, match=r"spec.objects\[0\].metadata.labels: applyset"):
        loaded(tmp_path, nested)


def test_the_annotations_of_authors_are_accepted(tmp_path: Path) -> None:
    values = {VDU: "Web", READY_WHEN: "stored", marks.KEEP: "true"}
    values |= {REPLACE: "true", EXTERNAL_ETCD: "false", UNREACHABLE: "true"}
    values |= {FAILED_WHEN: "condition=Broken", SUSPENDED_WHEN: "cel: spec.off", IGNORE_GENERATION: "true", OPTIONAL: "false"}
    values |= {NO_ACTIVITY: "60"}
    assert set(values) == reserved_marks.OF_AUTHORS
    (found,) = loaded(tmp_path, with_metadata(config_map("a"), annotations=values))
    assert found["metadata"]["annotations"] == values


def test_the_admission_policy_leaves_the_annotations_of_authors_to_all() -> None:
    """Who may write an object may write these, too: operators copy them to the objects that they make."""
    policy = Path(__file__).parents[2] / "doc" / "source" / "operator" / "admission_policy.yaml"
    assert set(re.findall(r"'(k8s-cr-driver/[a-z-]+)'", policy.read_text())) == reserved_marks.OF_AUTHORS


def test_a_name_of_an_inventory_is_refused_for_a_config_map_only(tmp_path: Path) -> None:
    with pytest.raises(InvalidPackage, match=rf"metadata.name: {marks.manager(BLUE)} is the name of an inventory"):
        loaded(tmp_path, config_map(marks.manager(BLUE)))
    assert loaded(tmp_path, deployment(marks.manager(BLUE)))


@pytest.mark.parametrize("manifest", [obj("v1", "Namespace", "blue"), crontab_crd()])
@pytest.mark.parametrize("holder", [{"finalizers": ["example.com/hold"]}, {"ownerReferences": [{"uid": "1"}]}])
def test_a_shared_object_has_no_finalizers_and_no_owners(tmp_path: Path, manifest: Object, holder: dict[str, Any]) -> None:
    assert {NAMESPACE, CRD} == SHARED
    with pytest.raises(InvalidPackage, match=rf"metadata.{next(iter(holder))}: is not possible in a .*remove it"):
        loaded(tmp_path, with_metadata(manifest, **holder))


def test_a_namespace_may_name_only_the_server_s_own_finalizer(tmp_path: Path) -> None:
    assert loaded(tmp_path, obj("v1", "Namespace", "blue", spec={"finalizers": ["kubernetes"]}))
    with pytest.raises(InvalidPackage, match=r"spec.finalizers: is not possible"):
        loaded(tmp_path, obj("v1", "Namespace", "blue", spec={"finalizers": ["kubernetes", "example.com/hold"]}))


def test_an_object_that_may_be_adopted_has_no_finalizers(tmp_path: Path) -> None:
    objects = loaded(tmp_path, with_metadata(config_map("a"), finalizers=["example.com/hold"]))
    with pytest.raises(InvalidPackage, match=r"ConfigMap .*a: metadata.finalizers: .*adopt-existing.*remove"):
        reserved_marks.check_adoptable(objects)
