# SPDX-License-Identifier: Apache-2.0
"""No input of the tool writes a line, or moves the cursor, on the terminal of its user: control characters are escaped."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from k8s_cr_driver.cli.commands import main
from k8s_cr_driver.objects.keys import Object
from tests.cli.packages import META, changed_vnfd, write_package
from tests.cli.tool import Tool
from tests.fake_api import FakeApi, faults
from tests.hostile import TEXTS, assert_harmless
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd, obj

GOOD = [crontab_crd(), crontab("tab"), config_map("a"), obj("apps/v1", "Deployment", "web", "default", spec={"replicas": 1})]
PARAMETERS = {"COUNT": {"type": "integer", "default": 1, "constraints": [{"in_range": [1, 5]}]}}


def run(*arguments: str, **env: str) -> None:
    """The command ends by itself, and shows nothing harmful."""
    result = CliRunner(env=env).invoke(main, list(arguments))
    assert isinstance(result.exception, SystemExit | None), result.exc_info
    assert_harmless(result.output)


def written(root: Path, *more: Object) -> Path:
    return write_package(root / "package", [*GOOD, *more], vdus={"Web": "web"}, aspects=["web"], parameters=PARAMETERS)


def file_name(text: str) -> str:
    return text.replace("\x00", "")


def of_a_file(root: Path, text: str) -> Path:
    package = written(root)
    (package / f"Files/kubernetes/{file_name(text)}.yaml").write_text("a: [")
    return package


def of_a_file_in_a_csar(root: Path, text: str) -> Path:
    csar = root / "a.csar"
    with zipfile.ZipFile(csar, "w") as archive:
        package = written(root)
        for path in filter(Path.is_file, package.rglob("*")):
            archive.write(path, path.relative_to(package).as_posix())
        archive.writestr(f"Files/kubernetes/{file_name(text)}.yaml", "a: [")
        archive.writestr(f"Definitions/{file_name(text)}.yaml", "a: [")
    return csar


def in_tosca_meta(root: Path, text: str) -> Path:
    package = written(root)
    blocks = [{"Name": text}, {"Name": "Files/kubernetes/all.yaml", "Algorithm": text}, {"Name": f"https://{text}"}]
    meta = yaml.safe_load(META) | {"Entry-Definitions": text}
    (package / "TOSCA-Metadata/TOSCA.meta").write_text("\n".join(yaml.safe_dump(one) for one in (meta, *blocks)))
    return package


def in_a_vnfd(root: Path, text: str) -> Path:
    package = written(root)
    with changed_vnfd(package) as content:
        content["imports"].append(text)
        template = content["topology_template"]
        template["substitution_mappings"]["properties"]["flavour_id"] = text
        template["node_templates"][text] = template["node_templates"]["Web"]
        template["policies"].append({text: {"type": "tosca.policies.nfv.ScalingAspects", "properties": {"aspects": {text: 1}}}})
        content["data_types"]["values"]["properties"][text] = {"type": text, "default": text}
    return package


def of_a_field(root: Path, text: str) -> Path:
    return written(root, {**crontab("b"), "spec": {text: text, "size": text}})


def of_an_object(root: Path, text: str) -> Path:
    return written(root, config_map(text))


def of_a_kind(root: Path, text: str) -> Path:
    return written(root, obj("example.com/v1", text, "a", "default"), obj(text, "A", "a", "default"))


def of_a_namespace(root: Path, text: str) -> Path:
    return written(root, {**config_map("b"), "metadata": {"name": "b", "namespace": text}})


def in_a_reference(root: Path, text: str) -> Path:
    marks = {"config.kubernetes.io/depends-on": f"/namespaces/default/ConfigMap/{text}", "k8s-cr-driver/vdu": text, text: text}
    return written(root, {**config_map("b"), "metadata": {"name": "b", "namespace": "default", "annotations": marks}})


def of_a_parameter(root: Path, text: str) -> Path:
    return written(root, config_map("b", data=f"${{{text}}} ${{COUNT:={text}}}"))


INPUTS: list[Callable[[Path, str], Path]] = [
    *(of_a_file, of_a_file_in_a_csar, in_tosca_meta, in_a_vnfd, of_a_field, of_an_object, of_a_kind, of_a_namespace),
    *(in_a_reference, of_a_parameter),
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize("spoiled", INPUTS)
def test_a_package_shows_none(spoiled: Callable[[Path, str], Path], text: str, tmp_path: Path, tool: Tool) -> None:
    path = spoiled(tmp_path, text)
    run("validate", str(path), "--param", f"{file_name(text)}=1", "--param", f"COUNT={file_name(text)}")
    run("validate", str(path), "--update-of", str(path))
    run("tree", str(path))
    run("diff", str(path), KUBECONFIG=str(tool.kubeconfig))
    run("package", str(path), "-o", str(tmp_path / "out.csar"))


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_a_cluster_shows_none(text: str, api: FakeApi, tool: Tool, tmp_path: Path) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("tab"), config_map("a")])
    condition = {"type": "Ready", "status": "False", "reason": text, "message": text}
    tab = api.get("CronTab", "default", "tab")
    api.put({**tab, "spec": {"schedule": text, text: text}, "status": {"phase": text, "conditions": [condition]}})
    package = write_package(tmp_path / "package", [crontab_crd(), crontab("tab"), config_map("b")])
    for command in (["instances"], ["tree", BLUE], ["diff", str(package), "--instance", BLUE], ["purge", BLUE, "--yes"]):
        api.fail(faults.status(403, text, text, causes=[{"reason": text, "field": text, "message": text}]), path="configmaps/a")
        run(*command, KUBECONFIG=str(tool.kubeconfig))
