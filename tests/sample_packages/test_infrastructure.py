# SPDX-License-Identifier: Apache-2.0
"""A provider that the user gives as a file becomes a part of the management cluster's package."""

import shutil
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from k8s_cr_driver.package import tosca_meta
from sample_packages import infrastructure
from sample_packages.__main__ import FOLDERS, main

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acme-system"}}
MARK = {"k8s-cr-driver/vdu": "Infrastructure"}


def deployment(name: str, **annotations: str) -> dict[str, object]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "annotations": annotations}}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The sample's folder, before any provider."""
    folder = Path(shutil.copytree(FOLDERS[infrastructure.SAMPLE], tmp_path / "package"))
    (folder / tosca_meta.MANIFESTS).mkdir(parents=True)
    return folder


def written(tmp_path: Path, *objects: object) -> str:
    file = tmp_path / "acme.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


def annotations(package: Path) -> dict[str, dict[str, str]]:
    """By the names of the package's Deployments."""
    found = yaml.safe_load_all((package / tosca_meta.MANIFESTS / "infrastructure.yaml").read_text())
    return {one["metadata"]["name"]: one["metadata"].get("annotations") for one in found if one["kind"] == "Deployment"}


def vnfd_id(package: Path) -> str:
    vnfd = yaml.safe_load((package / "Definitions" / f"{infrastructure.SAMPLE}.yaml").read_text())
    nodes = vnfd["topology_template"]["node_templates"]
    return str(nodes["VNF"]["properties"]["descriptor_id"])


def test_the_only_deployment_of_a_file_becomes_the_vdu(package: Path, tmp_path: Path):
    infrastructure.add(package, written(tmp_path, NAMESPACE, deployment("acme", note="x"), None))
    assert annotations(package) == {"acme": {"note": "x"} | MARK}


def test_a_deployment_without_annotations_becomes_the_vdu(package: Path, tmp_path: Path):
    infrastructure.add(package, written(tmp_path, {"kind": "Deployment", "metadata": {"name": "acme", "annotations": None}}))
    assert annotations(package) == {"acme": MARK}


def test_of_several_deployments_the_annotated_one_is_the_vdu(package: Path, tmp_path: Path):
    infrastructure.add(package, written(tmp_path, deployment("webhook"), deployment("acme", **MARK)))
    assert annotations(package) == {"webhook": {}, "acme": MARK}


@pytest.mark.parametrize("objects", [[NAMESPACE], [deployment("a"), deployment("b")], [["a"], {"kind": "Deployment"}]])
def test_a_file_without_one_deployment_is_refused_with_the_remedy(package: Path, tmp_path: Path, objects: list[object]):
    file = written(tmp_path, *objects)
    with pytest.raises(click.UsageError, match="annotate the one that is the provider with k8s-cr-driver/vdu: Infrastructure"):
        infrastructure.add(package, file)


def test_a_file_that_is_not_yaml_is_refused_by_its_name(package: Path, tmp_path: Path):
    (tmp_path / "acme.yaml").write_text("a: [")
    with pytest.raises(click.UsageError, match=r"acme\.yaml is not YAML"):
        infrastructure.add(package, str(tmp_path / "acme.yaml"))


def test_each_provider_is_a_vnfd_of_its_own(package: Path, tmp_path: Path):
    before = vnfd_id(package)
    infrastructure.add(package, written(tmp_path, deployment("one")))
    first = vnfd_id(package)
    infrastructure.add(package, written(tmp_path, deployment("other")))
    assert len({before, first, vnfd_id(package)}) == 3


def test_a_provider_that_nobody_has_is_refused():
    done = CliRunner().invoke(main, ["--infrastructure", "nowhere", infrastructure.SAMPLE])
    assert done.exit_code == 2 and "nowhere is neither in-memory nor openstack nor a file" in done.output
