# SPDX-License-Identifier: Apache-2.0
"""Images made without a registry are what a container runtime takes for a docker-archive."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from functional_tests.testbed import images


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF")
    return path


def content(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:alpine", "docker.io/library/nginx:alpine"),
        ("grafana/grafana", "docker.io/grafana/grafana:latest"),
        ("localhost/tool", "localhost/tool:latest"),
        ("host:5000/tool", "host:5000/tool:latest"),
        ("example.org/group/manager:v1.2", "example.org/group/manager:v1.2"),
    ],
)
def test_short_names_mean_what_runtimes_take_them_for(name: str, reference: str):
    assert images.reference(name) == reference


def test_an_archive_holds_the_program_as_its_entry_point(program: Path):
    files = content(images.archive(["tool", "example.org/tool:2"], "/bin/tool", {"/bin/tool": program}, user="65532"))
    (manifest,) = json.loads(files["manifest.json"])
    assert manifest["RepoTags"] == ["docker.io/library/tool:latest", "example.org/tool:2"]
    config = json.loads(files[manifest["Config"]])
    assert config["config"]["Entrypoint"] == ["/bin/tool"]
    assert config["config"]["User"] == "65532"
    (layer,) = manifest["Layers"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(files[layer]).hexdigest()}"]


def test_the_program_can_be_run_in_the_image(program: Path):
    archive = images.archive(["tool"], "/tool", {"/tool": program})
    with tarfile.open(archive) as outer, tarfile.open(fileobj=outer.extractfile("layer.tar")) as layer:
        assert [(member.name, member.mode, member.uid) for member in layer] == [("tool", 0o755, 0)]


def test_equal_input_gives_the_same_archive_and_another_program_another(program: Path, tmp_path: Path):
    first = images.archive(["tool"], "/tool", {"/tool": program})
    before = first.read_bytes()
    first.unlink()
    assert images.archive(["tool"], "/tool", {"/tool": program}).read_bytes() == before
    program.write_bytes(b"\x7fELF2")
    assert images.archive(["tool"], "/tool", {"/tool": program}) != first
