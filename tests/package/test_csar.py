# SPDX-License-Identifier: Apache-2.0
"""A folder becomes a CSAR file that Tacker accepts, or one learns what is wrong with it."""

import hashlib
import os
import zipfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from k8s_cr_driver.cli import commands, package_input
from k8s_cr_driver.package import csar
from k8s_cr_driver.package.check import of_folder
from tests.cli.packages import write_package
from tests.instance import config_map

META = """\
TOSCA-Meta-File-Version: 1.0
CSAR-Version: 1.1
Created-by: somebody
Entry-Definitions: Definitions/vnfd.yaml
"""
VNFD = """\
tosca_definitions_version: tosca_simple_yaml_1_2
imports: [etsi_nfv_sol001_common_types.yaml, etsi_nfv_sol001_vnfd_types.yaml]
topology_template:
  substitution_mappings:
    properties:
      flavour_id: simple
"""
SAMPLES = Path(__file__).parents[2] / "sample_packages"
MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "package"
    write(root, "TOSCA-Metadata/TOSCA.meta", META)
    write(root, "Definitions/vnfd.yaml", VNFD)
    write(root, "Files/kubernetes/settings.yaml", MANIFEST)
    return root


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def blocks(archive: Path) -> list[dict[str, str]]:
    with zipfile.ZipFile(archive) as file:
        texts = file.read("TOSCA-Metadata/TOSCA.meta").decode().split("\n\n")
    return [yaml.safe_load(text) for text in texts]


def test_the_csar_holds_the_folder_and_the_types_of_sol001(folder: Path, tmp_path: Path) -> None:
    archive = csar.write(folder, tmp_path / "new" / "sample.csar")
    with zipfile.ZipFile(archive) as file:
        assert file.namelist() == [
            "Definitions/etsi_nfv_sol001_common_types.yaml",
            "Definitions/etsi_nfv_sol001_vnfd_types.yaml",
            "Definitions/vnfd.yaml",
            "Files/kubernetes/settings.yaml",
            "TOSCA-Metadata/TOSCA.meta",
        ]
        assert file.read("Files/kubernetes/settings.yaml").decode() == MANIFEST
        types = yaml.safe_load(file.read("Definitions/etsi_nfv_sol001_vnfd_types.yaml"))
    assert "tosca.nodes.nfv.VNF" in types["node_types"]
    assert [path.name for path in archive.parent.iterdir()] == ["sample.csar"]


def test_type_files_of_the_folder_are_kept(folder: Path, tmp_path: Path) -> None:
    write(folder, "Definitions/etsi_nfv_sol001_vnfd_types.yaml", "node_types: {}\n")
    with zipfile.ZipFile(csar.write(folder, tmp_path / "sample.csar")) as file:
        assert file.read("Definitions/etsi_nfv_sol001_vnfd_types.yaml") == b"node_types: {}\n"
        assert "Definitions/etsi_nfv_sol001_common_types.yaml" in file.namelist()


def test_every_file_is_an_artifact_with_its_hash(folder: Path, tmp_path: Path) -> None:
    declared = "\nName: Files/kubernetes/settings.yaml\nContent-Type: text/plain\nAlgorithm: SHA-512\n"
    write(folder, "TOSCA-Metadata/TOSCA.meta", META + declared)
    write(folder, "Scripts/prepare.py", "pass\n")
    head, settings, script = blocks(csar.write(folder, tmp_path / "sample.csar"))
    assert head["Entry-Definitions"] == "Definitions/vnfd.yaml"
    assert settings == {
        "Name": "Files/kubernetes/settings.yaml",
        "Content-Type": "text/plain",
        "Algorithm": "SHA-512",
        "Hash": hashlib.sha512(MANIFEST.encode()).hexdigest(),
    }
    assert script["Name"] == "Scripts/prepare.py"
    assert script["Hash"] == hashlib.sha256(b"pass\n").hexdigest()


def test_the_same_folder_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    first = csar.write(folder, tmp_path / "first.csar")
    for path in folder.rglob("*"):
        path.touch()
    second = csar.write(folder, tmp_path / "second.csar")
    assert first.read_bytes() == second.read_bytes()
    for _ in range(2):  # the second time it is there already
        inside = csar.write(folder, folder / "inside.csar")
        assert first.read_bytes() == inside.read_bytes()


def test_an_artifact_at_a_url_keeps_its_hash_and_needs_one(folder: Path, tmp_path: Path) -> None:
    meta = folder / "TOSCA-Metadata/TOSCA.meta"
    before = meta.read_text()
    remote = "Source: https://example.com/one.yaml\nAlgorithm: SHA-256\n"
    meta.write_text(f"{before}\n{remote}")
    assert "https://example.com/one.yaml: Hash is missing" in "".join(problem for _, problem in of_folder(folder))
    meta.write_text(f"{before}\n{remote}Hash: {'a' * 64}\n")
    with zipfile.ZipFile(csar.write(folder, tmp_path / "a.csar")) as built:
        assert "a" * 64 in built.read("TOSCA-Metadata/TOSCA.meta").decode()


def test_a_file_that_cannot_be_written_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csar").mkdir()
    with pytest.raises(OSError) as error:
        csar.write(folder, tmp_path / "out.csar")
    assert error.value.filename == str(tmp_path / "out.csar")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_hidden_files_stay_out(folder: Path, tmp_path: Path) -> None:
    write(folder, ".git/config", "secret")
    write(folder, "Files/kubernetes/.settings.yaml.swp", "secret")
    with zipfile.ZipFile(csar.write(folder, tmp_path / "sample.csar")) as file:
        assert not [name for name in file.namelist() if "/." in f"/{name}"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("TOSCA-Metadata/TOSCA.meta", "CSAR-Version: 1.1\n", "TOSCA.meta: Entry-Definitions is missing"),
        ("TOSCA-Metadata/TOSCA.meta", "just text\n", "TOSCA.meta must be blocks of 'key: value' lines"),
        ("TOSCA-Metadata/TOSCA.meta", META.replace("vnfd", "none"), "names Definitions/none.yaml, which is not in"),
        ("TOSCA-Metadata/TOSCA.meta", META + "\nName: ../secret\n", "the artifact ../secret is not a file of the"),
        (
            "TOSCA-Metadata/TOSCA.meta",
            META + "\nName: Files/kubernetes/settings.yaml\nAlgorithm: SHA-256\nHash: abc\n",
            "Files/kubernetes/settings.yaml: Hash is not that of the file",
        ),
        (
            "TOSCA-Metadata/TOSCA.meta",
            META + "\nName: Files/kubernetes/settings.yaml\nAlgorithm: MD5\n",
            "Files/kubernetes/settings.yaml: Algorithm must be one of SHA-224",
        ),
        ("Definitions/vnfd.yaml", "a: [\n", "Definitions/vnfd.yaml is not YAML"),
        ("Definitions/vnfd.yaml", "- a\n", "Definitions/vnfd.yaml must be one TOSCA service template"),
        ("Definitions/vnfd.yaml", "description: none\n", "no file has topology_template.substitution_mappings"),
        ("Definitions/vnfd.yaml", VNFD + "---\n", "Definitions/vnfd.yaml must be one TOSCA service template"),
        ("Definitions/other.yaml", "imports: [lost.yaml]\n", "Definitions/other.yaml: imports lost.yaml, which is not"),
    ],
)
def test_each_mistake_is_reported(folder: Path, name: str, text: str, expected: str) -> None:
    write(folder, name, text)
    assert [problem for _, problem in of_folder(folder) if expected in problem], of_folder(folder)


def test_a_missing_tosca_meta_is_reported(folder: Path) -> None:
    (folder / "TOSCA-Metadata" / "TOSCA.meta").unlink()
    assert any("TOSCA-Metadata/TOSCA.meta is missing" in problem for _, problem in of_folder(folder))


@pytest.mark.parametrize("meta", sorted(SAMPLES.glob("*/TOSCA-Metadata/TOSCA.meta")), ids=lambda meta: meta.parts[-3])
def test_the_sample_packages_are_right(meta: Path) -> None:
    assert of_folder(meta.parents[1]) == []
    package_input.load(meta.parents[1], {}, lenient=True)  # InvalidPackage for a manifest that is wrong


def test_the_command_says_by_its_exit_code_what_happened(tmp_path: Path) -> None:
    run, folder = CliRunner().invoke, write_package(tmp_path / "package", [config_map("a")])
    good = run(commands.main, ["package", str(folder), "-o", str(tmp_path / "a.csar")])
    assert (good.exit_code, (tmp_path / "a.csar").is_file()) == (0, True)
    write(folder, "Definitions/vnfd.yaml", "a: [\n")
    bad = run(commands.main, ["package", str(folder), "-o", str(tmp_path / "b.csar")])
    assert bad.exit_code == 1
    assert "Definitions/vnfd.yaml is not YAML" in bad.output
    assert run(commands.main, ["package", str(tmp_path / "none"), "-o", "c.csar"]).exit_code == 2


def test_a_link_of_the_name_of_an_unfinished_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """In a folder of many, such as /tmp."""
    (victim := tmp_path / "victim").write_text("mine")
    for name in (f".a.csar.{os.getpid()}", "a.csar"):
        (tmp_path / name).symlink_to(victim)
    assert csar.write(folder, tmp_path / "a.csar").read_bytes()[:2] == b"PK"
    assert victim.read_text() == "mine"
