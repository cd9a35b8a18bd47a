# SPDX-License-Identifier: Apache-2.0
"""What Tacker's TOSCA parser says of a package, which may be hostile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.package import tosca, vnfd
from tests.cli.packages import changed_vnfd, write_package
from tests.instance import config_map

VNFD = "Definitions/vnfd.yaml"
RIGHT = tosca.Outcome([], [])
TYPES = "https://forge.etsi.org/rep/nfv/SOL001/raw/v2.6.1/etsi_nfv_sol001_vnfd_types.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_package(tmp_path / "package", [config_map("a")])


def change(folder: Path, how: Callable[[dict[str, Any]], object]) -> None:
    with changed_vnfd(folder) as content:
        how(content)


def parse(folder: Path) -> tosca.Outcome:
    with tosca.parsing(folder) as outcome:
        return outcome()


def enter(folder: Path, name: str, text: str) -> None:
    """Make a file with that text the entry."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    meta = folder / "TOSCA-Metadata/TOSCA.meta"
    meta.write_text(meta.read_text().replace(VNFD, name))


def the_vnf(content: dict[str, Any]) -> dict[str, Any]:
    return content["topology_template"]["node_templates"]["VNF"]


def test_a_package_whose_flavours_are_files_of_their_own_is_right(folder: Path) -> None:
    """Its entry selects one by an input without a default, of which the parser warns. The flavour has an empty id."""

    def divide(content: dict[str, Any]) -> None:
        template = content["topology_template"]
        template["inputs"] = content["node_types"]["sample.VNF"]["properties"]
        of_flavour = yaml.safe_load(yaml.safe_dump(content))
        the_vnf(of_flavour)["properties"]["descriptor_id"] = ""
        (folder / "Definitions/simple.yaml").write_text(yaml.safe_dump(of_flavour))
        template["inputs"] = {"selected_flavour": {"type": "string"}}
        del template["substitution_mappings"]
        content["imports"].append("simple.yaml")

    change(folder, divide)
    assert parse(folder) == RIGHT


def test_an_entry_without_nodes_is_reported(folder: Path) -> None:
    enter(folder, "entry.yaml", "tosca_definitions_version: tosca_simple_yaml_1_2\nimports: [Definitions/vnfd.yaml]\n")
    assert parse(folder).refusals == ["Entry-Definitions: no node has a descriptor_id; the VNF must be there"]


def test_files_anywhere_in_the_package_are_there_for_the_parser(folder: Path) -> None:
    text = (folder / VNFD).read_text()
    enter(folder, "VNFD/entry.yaml", text.replace("imports:", "imports:\n- more/types.yaml"))
    (folder / "VNFD/more").mkdir()
    (folder / "VNFD/more/types.yaml").write_text("tosca_definitions_version: tosca_simple_yaml_1_2\nnode_types: {}\n")
    for path in vnfd._missing_types(folder):
        (folder / "VNFD" / path.name).write_bytes(path.read_bytes())
    assert parse(folder) == RIGHT


@pytest.mark.parametrize(
    "how, text",
    [
        (lambda content: the_vnf(content)["properties"].update(size=1), 'UnknownFieldError: "properties" of template "VNF"'),
        (lambda content: the_vnf(content)["properties"].update(descriptor_id=""), "descriptor_id is empty; give the package a"),
        (lambda content: content["topology_template"]["node_templates"].clear(), "no node has a descriptor_id"),
        (
            lambda content: the_vnf(content).update(artifacts={"a": {"type": "tosca.artifacts.File", "file": "../none"}}),
            'The resource "../none" does not exist',
        ),
        (
            lambda content: content["topology_template"]["substitution_mappings"].pop("node_type"),
            "Definitions/vnfd.yaml: topology_template.substitution_mappings.node_type is missing; it must be the type of",
        ),
    ],
)  # fmt: skip
def test_what_tacker_refuses_is_reported(folder: Path, how: Callable[[dict[str, Any]], object], text: str) -> None:
    change(folder, how)
    [refusal], _ = parse(folder)
    assert text in refusal


@pytest.mark.parametrize(
    "how",
    [
        lambda content: content["imports"].append("vnfd.yaml"),
        lambda content: content["node_types"]["sample.VNF"].update(derived_from="sample.VNF"),
        lambda content: (
            content["node_types"]["sample.VNF"]["properties"]["provider"].update(constraints=[{"pattern": "(a+)+$"}]),
            the_vnf(content)["properties"].update(provider="a" * 40 + "b"),
        ),
    ],
)
def test_what_takes_the_parser_too_long_is_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[dict[str, Any]], object]
) -> None:
    monkeypatch.setattr(tosca, "_SECONDS", 1)
    change(folder, how)
    [refusal], _ = parse(folder)
    assert refusal.startswith("Tacker's TOSCA parser has not ended for 1 s; look for a type that is derived from itself")


def test_what_takes_too_much_memory_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry beside the Definitions, whose merge keys nobody has measured: 9 ** 8 values."""
    monkeypatch.setattr(tosca, "_BYTES", 1 << 20)
    merged = "\n".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9))
    enter(folder, "entry.yaml", f"a0: &a0 {{x: 1}}\n{merged}\n{(folder / VNFD).read_text()}")
    [refusal], _ = parse(folder)
    assert refusal.startswith(("Tacker's TOSCA parser fails", "Tacker's TOSCA parser has ended with status"))


def test_no_code_of_the_package_is_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry may have the name of a module, and the user may be in the package's folder."""
    made = folder.parent / "made"
    monkeypatch.chdir(folder)
    for name in ("json", "yaml", "zipfile", "multiprocessing"):
        (folder / f"{name}.py").write_text(f"open({str(made)!r}, 'w')\n")
    enter(folder, "json.py", f"open({str(made)!r}, 'w')\n")
    assert parse(folder).refusals
    assert not made.exists()


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A URL, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}", asked
        http.shutdown()


def test_nothing_is_loaded_from_urls(folder: Path, server: tuple[str, list[str]]) -> None:
    url, asked = server
    for number, entry in enumerate([{"a": f"{url}/a"}, {"a": {"file": f"{url}/a"}}]):
        package = write_package(folder.parent / str(number), [config_map("a")])
        change(package, lambda content: content["imports"].append(entry))  # noqa: B023
        assert parse(package).remote == [f"{url}/a"]
    artifact = {"type": "tosca.artifacts.File", "file": f"{url}/a"}
    change(folder, lambda content: the_vnf(content).update(artifacts={"a": artifact}))
    assert f"{url}/a" in parse(folder).remote
    assert asked == []


def test_the_types_of_sol001_at_their_url_are_those_of_the_package_or_of_an_installed_one(folder: Path) -> None:
    change(folder, lambda content: content["imports"].__setitem__(1, TYPES))
    assert parse(folder) == RIGHT


def test_only_files_are_read_and_nothing_is_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary := folder.parent / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    definitions = folder / "Definitions"
    (definitions / "a").symlink_to(".")
    (definitions / "b").symlink_to(".")
    (definitions / "old.yaml.bak").symlink_to("nothing")
    os.mkfifo(definitions / "fifo")
    assert parse(folder) == RIGHT
    assert list(temporary.iterdir()) == []
