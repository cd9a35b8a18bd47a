# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr validate`: what is wrong with a package, and what a change to it cannot take over."""

import contextlib
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import Object, key_of
from k8s_cr_driver.package import csar
from tests.cli.packages import META, changed_vnfd, write_package
from tests.cli.tool import Tool
from tests.instance import config_map, crontab, crontab_crd, deployment, obj, stateful_set

RIGHT: dict[str, list[Any]] = {"problems": [], "warnings": [], "findings": [], "scripts": []}
"""What is reported of a package without mistakes and scripts."""


def test_a_good_package_has_no_findings_and_needs_no_cluster(tool: Tool, tmp_path: Path) -> None:
    tool.kubeconfig.unlink()
    folder = write_package(tmp_path / "p", [crontab_crd(), crontab("one"), deployment()], vdus={"Web": "web"})
    assert tool.json("validate", str(folder)) == RIGHT
    archive = csar.write(folder, tmp_path / "p.csar")
    assert tool.run("validate", str(archive)).stderr == f"{archive}: 0 errors, 0 warnings\n"


def test_what_is_no_package_is_a_problem_in_json_too(tool: Tool) -> None:
    (problem,) = tool.json("validate", str(tool.kubeconfig), code=1)["problems"]
    assert "is neither a folder nor a CSAR file" in problem


@pytest.mark.parametrize(("wish", "coloured"), [("", True), ("1", False)])
def test_colours_are_for_terminals_of_those_who_want_them(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wish: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", wish)
    with tool.on_terminal("validate", str(tmp_path)) as (_, until):
        assert ("\x1b[31m" in until("error")) is coloured


def test_a_package_without_manifests_is_reported(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [])
    (folder / "Files/kubernetes/all.yaml").unlink()
    (warning,) = tool.json("validate", str(folder))["warnings"]
    assert warning.startswith("Files/kubernetes: no manifests")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"apiVersion": "v1", "kind": "ConfigMap"', "one.json, document 1"),
        ('{"kind": "ConfigMap", "metadata": {"name": "a"}}', "one.json, document 1: apiVersion: is missing"),
        ('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": 1}}', "data.a: is an integer"),
    ],
)
def test_manifests_in_json_are_checked_like_those_in_yaml(tool: Tool, tmp_path: Path, text: str, expected: str) -> None:
    folder = write_package(tmp_path / "p", [config_map("b")])
    (folder / "Files/kubernetes/one.json").write_text(text)
    (problem,) = tool.json("validate", str(folder), code=1)["problems"]
    assert expected in problem


@pytest.mark.parametrize("form", ["${NAME:-x}", "${NAME-x}", "a ${NAME:?no} b", "${NAME:+x}"])
def test_a_parameter_with_the_default_of_a_shell_is_reported(tool: Tool, tmp_path: Path, form: str) -> None:
    kept = ["$${NAME:-x}", "${OTHER:-x}", "${NAME:=x}", "${NAME}", "$NAME"]
    folder = write_package(
        tmp_path / "p",
        [config_map("a", text=form, more=" ".join(kept))],
        parameters={"NAME": {"type": "string", "default": "y"}},
    )
    (warning,) = tool.json("validate", str(folder))["warnings"]
    assert warning.startswith("Files/kubernetes/all.yaml: ${NAME:-...} stays as it stands, though NAME is a parameter")


def test_folders_of_windows_are_named(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        path.rename(folder / str(path.relative_to(folder)).replace("/", "\\"))
    problems = tool.json("validate", str(folder), code=1)["problems"]
    assert "Files\\kubernetes\\all.yaml: has a backslash in its name; write / between folders" in problems


def test_a_file_beside_the_manifests_that_is_not_read_is_reported(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("b")])
    (folder / "Files/kubernetes/one.yaml.old").write_text("kind: [")
    (warning,) = tool.json("validate", str(folder))["warnings"]
    assert warning.startswith("Files/kubernetes/one.yaml.old: not checked, for manifests are *.yaml, *.yml, *.json")
    assert tool.json("validate", str(folder), "--file", "Files/kubernetes/one.yaml.old", code=1)["problems"]


def test_of_the_files_that_are_named_alone_problems_are_reported(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    (folder / "Files/kubernetes/other.yaml").write_text("kind: [")
    assert tool.json("validate", str(folder), "--file", "Files/kubernetes/all.yaml") == RIGHT
    (problem,) = tool.json("validate", str(folder), "--file", "Files/kubernetes/other.yaml", code=1)["problems"]
    assert problem.startswith("Files/kubernetes/other.yaml, document 1")


def test_objects_are_checked_against_the_package_s_crds(tool: Tool, tmp_path: Path) -> None:
    bad = obj("stable.example.com/v1", "CronTab", "one", spec={"cronSpek": "x"})
    folder = write_package(tmp_path / "p", [crontab_crd(), bad])
    (problem,) = tool.json("validate", str(folder), code=1)["problems"]
    assert "spec.cronSpek: unknown field" in problem


def test_a_file_with_another_digest_is_a_problem(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    meta = f"{META}\nName: Files/kubernetes/all.yaml\nAlgorithm: SHA-256\nHash: {'0' * 64}\n"
    (folder / "TOSCA-Metadata/TOSCA.meta").write_text(meta)
    assert "Hash is not that of the file" in tool.run("validate", str(folder), code=1).stdout


def test_a_vdu_without_object_is_a_problem(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [deployment()], vdus={"Db": "db"})
    (problem,) = tool.json("validate", str(folder), code=1)["problems"]
    assert problem.startswith("Flavour simple: VDU Db is no object of the manifests")


def control_plane(replicas: object) -> Object:
    return obj("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "cp", "default", spec={"replicas": replicas})


def test_a_count_that_instantiate_refuses_is_a_problem(tool: Tool, tmp_path: Path) -> None:
    parameters = {"COUNT": {"type": "integer", "default": 2}}
    folder = write_package(tmp_path / "p", [control_plane("${COUNT}")], vdus={"Control": "cp"}, parameters=parameters)
    [problem] = tool.json("validate", str(folder), code=1)["problems"]
    assert problem.startswith(f"Flavour simple: VDU Control is {key_of(control_plane(1))}, spec.replicas: cannot be 2: etcd ")
    assert not tool.json("validate", str(folder), "--param", "COUNT=3")["problems"]


def test_a_count_is_not_checked_where_it_is_a_sample_or_not_used(tool: Tool, tmp_path: Path) -> None:
    parameters = {"COUNT": {"type": "integer", "constraints": [{"in_range": [2, 4]}]}}
    folder = write_package(tmp_path / "a", [control_plane("${COUNT}")], vdus={"Control": "cp"}, parameters=parameters)
    assert not tool.json("validate", str(folder))["problems"]
    folder = write_package(tmp_path / "b", [control_plane(2)], vdus={"Control": "cp"})
    levels = {"type": "tosca.policies.nfv.VduInstantiationLevels", "targets": ["Control"]}
    values = {"levels": {"a": {"number_of_instances": 1}}}
    with changed_vnfd(folder) as content:
        content["topology_template"]["policies"] = [{"counts": {**levels, "properties": values}}]
    assert not tool.json("validate", str(folder))["problems"]


def test_what_only_the_cluster_s_crds_can_show_is_a_warning(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [crontab("db")], vdus={"Db": "db"})
    found = tool.json("validate", str(folder))
    assert found["problems"] == []
    assert "VDU Db is no object" in found["warnings"][0]
    assert found["warnings"][1] == (
        "CronTab.stable.example.com (db): the cluster must have its CustomResourceDefinition, or instantiate is refused; "
        "add it to the package if nobody else installs it"
    )


def test_parameters_are_checked_and_filled_in(tool: Tool, tmp_path: Path) -> None:
    crd = crontab_crd()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["count"] = {"type": "integer"}
    counted = obj("stable.example.com/v1", "CronTab", "one", spec={"count": "${COUNT}"})
    folder = write_package(tmp_path / "p", [crd, counted], parameters={"COUNT": {"type": "string"}})
    assert "--param" in tool.run("validate", str(folder)).stdout
    assert "spec.count: is" in tool.run("validate", str(folder), "--param", "COUNT=five", code=1).stdout
    result = tool.run("validate", str(folder), "--param", "COUNTS=5", code=1)
    assert "did you mean COUNT?" in result.stdout
    assert "NAME=VALUE" in tool.run("validate", str(folder), "--param", "COUNT", code=2).stderr
    assert "given twice" in tool.run("validate", str(folder), "--param", "COUNT=5", "--param", "COUNT=6", code=2).stderr


def test_typed_and_secret_parameters(tool: Tool, tmp_path: Path) -> None:
    declared = {"COUNT": {"type": "integer"}, "LOGIN": {"type": "string", "metadata": {"secret": "true"}}}
    secret = {"name": "LOGIN", "valueFrom": {"secretKeyRef": "${LOGIN}"}}
    web = deployment(containers=[{"name": "c", "image": "c:${COUNT}", "env": [secret]}])
    folder = write_package(tmp_path / "p", [web], parameters=declared)
    warnings = tool.json("validate", str(folder), "--param", "COUNT=5", "--param", "LOGIN=door/key")["warnings"]
    assert warnings == ["Deployment.apps default/web refers to Secret default/door, which the package does not bring"]
    wrong = tool.run("validate", str(folder), "--param", "COUNT=5", "--param", "LOGIN=hunter2", code=1)
    assert "SECRET/KEY" in wrong.stdout
    assert "hunter2" not in wrong.output


@pytest.mark.parametrize(
    ("objects", "wanted"),
    [
        ([deployment(volumes=[{"name": "v", "configMap": {"name": "a"}}])], "ConfigMap default/a"),
        ([deployment(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "a"}}])], "PersistentVolumeClaim default/a"),
        ([deployment(serviceAccountName="a")], "ServiceAccount default/a"),
        ([config_map("x", "a")], "Namespace a"),
        ([obj("rbac.authorization.k8s.io/v1", "RoleBinding", "x", roleRef={"kind": "Role", "name": "a"})], "/a,"),
    ],
)
def test_a_reference_to_what_nobody_brings_is_a_warning(tool: Tool, tmp_path: Path, objects: list[Object], wanted: str) -> None:
    (warning,) = tool.json("validate", str(write_package(tmp_path / "p", objects)))["warnings"]
    assert wanted in warning


@pytest.mark.parametrize(
    "objects",
    [
        [deployment(volumes=[{"name": "v", "configMap": {"name": "a", "optional": True}}])],
        [deployment(volumes=[{"name": "v", "configMap": {"name": "a"}}]), config_map("a")],
        [deployment(serviceAccountName="default")],
        [config_map("x", "kube-system")],
    ],
)
def test_what_is_brought_optional_or_always_there_is_no_warning(tool: Tool, tmp_path: Path, objects: list[Object]) -> None:
    assert tool.json("validate", str(write_package(tmp_path / "p", objects)))["warnings"] == []


@pytest.mark.parametrize(("size", "refused"), [("500Mi", True), ("10240Mi", False), ("20Gi", False)])
def test_claim_that_shrinks_cannot_be_applied(tool: Tool, tmp_path: Path, size: str, refused: bool) -> None:
    def claim(storage: str) -> Object:
        return obj("v1", "PersistentVolumeClaim", "records", spec={"resources": {"requests": {"storage": storage}}})

    old, new = write_package(tmp_path / "old", [claim("10Gi")]), write_package(tmp_path / "new", [claim(size)])
    problems = tool.json("validate", str(new), "--update-of", str(old), code=int(refused))["problems"]
    path = "PersistentVolumeClaim default/records: spec.resources.requests.storage"
    wanted = f"{path} is {size} and was 10Gi. A volume never shrinks: keep it, or rename the object"
    assert problems == ([wanted] if refused else [])


def test_what_a_change_of_package_cannot_take_over(tool: Tool, tmp_path: Path) -> None:
    old = write_package(tmp_path / "old", [deployment(), deployment("db")], vdus={"Web": "web", "Db": "db"}, aspects=["web"])
    new = write_package(tmp_path / "new", [deployment(app="other")], vdus={"Web": "web"}, aspects=["web", "more"])
    found = tool.json("validate", str(new), "--update-of", str(old), code=1)
    (problem,) = found["problems"]
    assert problem.startswith("Deployment.apps default/web: spec.selector is immutable and changes")
    assert found["warnings"] == [
        "VDU Db vanishes, with its VNFCs and their objects",
        "Scaling aspect more is new: Tacker can scale it after its next database synchronization, not before",
    ]
    assert tool.json("validate", str(old), "--update-of", str(old)) == RIGHT


def test_what_the_new_crd_has_no_more_is_named(tool: Tool, tmp_path: Path) -> None:
    narrower = crontab_crd()
    narrower["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {}
    old, new = write_package(tmp_path / "old", [crontab_crd()]), write_package(tmp_path / "new", [narrower])
    (warning,) = tool.json("validate", str(new), "--update-of", str(old))["warnings"]
    assert "crontabs.stable.example.com: spec.cronSpec (v1) is not in the schema" in warning


@pytest.mark.parametrize("arguments", [(), ("--helm-hooks",)])
def test_a_hook_of_helm_that_is_of_no_installation_is_a_warning(tool: Tool, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    hooks = [obj("v1", "Pod", "nrf-try", spec={"containers": [{"name": "c", "image": "i"}]}), config_map("seed")]
    for one, hook in zip(hooks, ("test", "post-install"), strict=True):
        one["metadata"]["annotations"] = {"helm.sh/hook": hook}
    (warning,) = tool.json("validate", str(write_package(tmp_path / "p", [deployment(), *hooks])), *arguments)["warnings"]
    what = "is applied as any other object" if arguments else "is not applied, as helm-hooks is not set"
    assert warning.startswith(f"Pod nrf-try: {what}: Helm runs it as hook test (helm.sh/hook)")


def test_an_object_that_may_be_replaced_may_change_at_will(tool: Tool, tmp_path: Path) -> None:
    changed = deployment(app="other")
    changed["metadata"]["annotations"] = {"k8s-cr-driver/replace": "true"}
    old, new = write_package(tmp_path / "old", [deployment()]), write_package(tmp_path / "new", [changed])
    assert tool.json("validate", str(new), "--update-of", str(old))["problems"] == []


def test_parameters_of_the_new_package_alone_do_not_disturb_the_old(tool: Tool, tmp_path: Path) -> None:
    old = write_package(tmp_path / "old", [config_map("a")])
    new = write_package(tmp_path / "new", [config_map("a", b="${B}")], parameters={"B": {"type": "string"}})
    assert tool.json("validate", str(new), "--update-of", str(old), "--param", "B=1") == RIGHT


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("Definitions/vnfd.yaml", b"topology_template: text\nimports: 5\n", "flavour_id"),
        ("Definitions/vnfd.yaml", b"topology_template: {substitution_mappings: [1]}\n", "flavour_id"),
        ("Definitions/vnfd.yaml", b"a: \xff\n", "Definitions/vnfd.yaml is not UTF-8"),
        ("Definitions/vnfd.yaml", b"[" * 200_000, "Definitions/vnfd.yaml is not YAML: is nested deeper than 200 levels"),
        ("TOSCA-Metadata/TOSCA.meta", b"\xff\n", "TOSCA.meta is not UTF-8"),
        ("TOSCA-Metadata/TOSCA.meta", b"- a\n", "'key: value'"),
        ("Files/kubernetes/all.yaml", b"kind: [", "all.yaml"),
    ],
)
def test_bad_files_are_reported_without_a_traceback(
    tool: Tool, tmp_path: Path, file: str, content: bytes, expected: str
) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    (folder / file).write_bytes(content)
    assert expected in tool.run("validate", str(folder), code=1).stdout


def test_no_csar_is_made_of_a_package_that_is_not_valid(tool: Tool, tmp_path: Path) -> None:
    lost = config_map("a")
    lost["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Nobody"}
    folder, archive = write_package(tmp_path / "p", [lost]), tmp_path / "a.csar"
    result = tool.run("package", str(folder), "-o", str(archive), code=1)
    assert "names 'Nobody', which the VNFD does not have" in result.stdout
    assert not archive.exists()


def test_the_warnings_of_a_package_are_shown_when_it_is_written(tool: Tool, tmp_path: Path) -> None:
    parameters = {"NAME": {"type": "string"}, "SIZE": {"type": "integer"}}
    objects = [config_map("${NAME}", size="${SIZE}")]
    folder, archive = write_package(tmp_path / "p", objects, parameters=parameters), tmp_path / "a.csar"
    result = tool.run("package", str(folder), "-o", str(archive))
    assert "warning: Parameters without a default: NAME, SIZE. Samples stand for them here" in result.stdout
    assert "an instantiate needs their values, in request.json or by --param NAME=VALUE of k8s-cr run" in result.stdout
    assert archive.exists()


def test_no_csar_is_written_into_its_own_folder(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    assert "write it elsewhere" in tool.run("package", str(folder), "-o", str(folder / "a.csar"), code=2).stderr
    assert not (folder / "a.csar").exists()


def test_a_file_that_cannot_be_written_is_one_error(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    os.mkfifo(tmp_path / "pipe")
    for output in (tool.kubeconfig / "a.csar", tmp_path / "missing" / "a.csar", tmp_path / "pipe"):
        result = tool.run("package", str(folder), "-o", str(output), code=2)
        assert result.stderr.splitlines()[-1].startswith(f"Error: --output {output}: ")
    assert (tmp_path / "pipe").is_fifo()


def test_a_csar_is_written_where_a_link_leads(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    link = tmp_path / "link.csar"
    link.symlink_to(tmp_path / "a.csar")
    tool.run("package", str(folder), "-o", str(link))
    assert link.is_symlink()
    assert (tmp_path / "a.csar").stat().st_size > 0


def test_a_finding_that_many_objects_share_is_one_line(tool: Tool, tmp_path: Path) -> None:
    old = write_package(tmp_path / "old", [deployment(f"web-{index}") for index in range(9)])
    changed = [deployment(f"web-{index}", app="other", serviceAccountName="a") for index in range(9)]
    new = write_package(tmp_path / "new", changed)
    found = tool.json("validate", str(new), "--update-of", str(old), code=1)
    nine = "Deployment.apps default/web-0, Deployment.apps default/web-1, Deployment.apps default/web-2 and 6 more"
    assert found["warnings"] == [f"{nine} refer to ServiceAccount default/a, which the package does not bring"]
    (problem,) = found["problems"]
    assert problem.startswith(f"{nine}: spec.selector is immutable and changes. Keep it, rename the object")


def test_a_path_that_does_not_exist_is_reported_with_what_a_package_is(tool: Tool, tmp_path: Path) -> None:
    result = tool.run("validate", "nothere.yaml", code=2)
    assert "nothere.yaml does not exist; give the folder with TOSCA-Metadata/TOSCA.meta, or a CSAR file" in result.stderr
    (tmp_path / "manifest.yaml").write_text("kind: ConfigMap\n")
    (problem,) = tool.json("validate", str(tmp_path / "manifest.yaml"), code=1)["problems"]
    assert problem.endswith("give the folder with TOSCA-Metadata/TOSCA.meta, or a CSAR file")


def test_a_link_to_itself_and_a_pipe_are_one_error_each(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    (folder / "Files/loop").symlink_to("loop")
    assert tool.json("validate", str(folder), code=1)["problems"] == ["Files/loop: is a link that leads nowhere; remove it"]
    (folder / "Files/loop").unlink()
    os.mkfifo(folder / "Definitions/pipe.yaml")
    assert "Definitions/pipe.yaml: is no file" in tool.json("validate", str(folder), code=1)["problems"]


@pytest.mark.parametrize("link", ["Files/leak.txt", "Definitions/leak.yaml", "Files/kubernetes/folder", "Scripts"])
def test_a_link_that_leaves_the_folder_is_refused(tool: Tool, tmp_path: Path, link: str) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/leak.yaml").write_text("canary: [")
    (folder / link).symlink_to(tmp_path / "outside" / ("leak.yaml" if "leak" in link else ""))
    (problem,) = tool.json("validate", str(folder), code=1)["problems"]
    assert problem == f"{link}: is a link that leads out of the folder; put a copy of the file there"
    assert link in tool.run("package", str(folder), "-o", str(tmp_path / "p.csar"), code=1).output
    assert not (tmp_path / "p.csar").exists()


def test_a_link_within_the_folder_is_its_file(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    (folder / "Files/copy.txt").symlink_to("kubernetes/all.yaml")
    assert tool.json("validate", str(folder)) == RIGHT


def test_a_damaged_csar_is_a_problem(tool: Tool, tmp_path: Path) -> None:
    whole = csar.write(write_package(tmp_path / "p", [config_map("a")]), tmp_path / "p.csar").read_bytes()
    damaged = tmp_path / "damaged.csar"
    for position in range(0, len(whole), len(whole) // 60):
        broken = bytes(byte ^ 0x5A for byte in whole[position : position + 7])
        damaged.write_bytes(whole[:position] + broken + whole[position + 7 :])
        with contextlib.suppress(InvalidPackage), package_input.opened(damaged):
            pass
    damaged.write_bytes(whole[: len(whole) // 2])
    (problem,) = tool.json("validate", str(damaged), code=1)["problems"]
    assert "is neither a folder nor a CSAR file" in problem


def test_a_csar_of_too_many_files_is_not_unpacked(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_input, "FILES_LIMIT", 3)
    archive = csar.write(write_package(tmp_path / "p", [config_map("a")]), tmp_path / "p.csar")
    (problem,) = tool.json("validate", str(archive), code=1)["problems"]
    assert problem == f"{archive}: has more than 3 files, the limit"


def test_what_the_parser_of_tacker_refuses_is_a_problem(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [deployment()], vdus={"Web": "web"})
    path = folder / "Definitions/vnfd.yaml"
    path.write_text(path.read_text().replace("name: web", "name: web\n        size: 1"))
    [problem] = tool.json("validate", str(folder), code=1)["problems"]
    assert problem.startswith('Tacker\'s TOSCA parser refuses the package: UnknownFieldError: "properties" of template "Web"')


def test_where_the_parser_of_tacker_would_load_a_url_a_warning_says_so(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    path = folder / "Definitions/vnfd.yaml"
    path.write_text(path.read_text().replace("imports:", "imports:\n- http://127.0.0.1:9/more.yaml"))
    found = tool.json("validate", str(folder))
    assert found["warnings"] == ["Imports of http://127.0.0.1:9/more.yaml: not loaded, so Tacker's parser was not asked"]
    assert not found["problems"]


def test_a_csar_whose_manifests_tacker_would_not_unpack_is_a_warning(tool: Tool, tmp_path: Path) -> None:
    folder, archive = write_package(tmp_path / "p", [config_map("a")]), tmp_path / "a.csar"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in folder.rglob("*"):
            zipped.write(path, path.relative_to(folder))
    warnings = tool.json("validate", str(archive))["warnings"]
    assert warnings[0].startswith("Files/kubernetes/all.yaml: not named in TOSCA-Metadata/TOSCA.meta")
    tool.run("package", str(folder), "-o", str(archive))
    assert tool.json("validate", str(archive))["warnings"] == []


def test_a_parameter_that_only_the_former_package_needs_is_no_change_of_the_others(tool: Tool, tmp_path: Path) -> None:
    text, database = {"type": "string"}, stateful_set("db", serviceName="${NAME}")
    old = write_package(tmp_path / "old", [database, config_map("a", x="${OTHER}")], parameters={"NAME": text, "OTHER": text})
    new = write_package(tmp_path / "new", [database, config_map("a", x="same")], parameters={"NAME": text})
    assert "serviceName" not in tool.run("validate", str(new), "--update-of", str(old), "--param", "NAME=mydb").output


@pytest.mark.parametrize("before", [True, False], ids=["served", "not served"])
def test_a_crd_that_drops_a_version_in_which_objects_may_be_stored_is_found(tool: Tool, tmp_path: Path, before: bool) -> None:
    """Case 22: the API server refuses the change once the cluster has stored an object in that version."""
    old, new = crontab_crd(), crontab_crd()
    (version,) = new["spec"]["versions"]
    old["spec"]["versions"] = [{**version, "storage": False, "served": before}, {**version, "name": "v2"}]
    version["name"] = "v2"
    former, package = write_package(tmp_path / "old", [old]), write_package(tmp_path / "new", [new])
    problems = tool.json("validate", str(package), "--update-of", str(former), code=int(before))["problems"]
    assert [text.partition(". A cluster")[0] for text in problems] == [
        "CustomResourceDefinition.apiextensions.k8s.io crontabs.stable.example.com: version v1 vanishes"
    ] * before


@pytest.mark.parametrize(("command", "given"), [("package", True), ("package", False), ("validate", True), ("validate", False)])
def test_objects_are_checked_in_the_namespace_of_the_request(tool: Tool, tmp_path: Path, command: str, given: bool) -> None:
    waits = deployment()
    waits["metadata"]["annotations"] = {"config.kubernetes.io/depends-on": "/namespaces/blue/ConfigMap/a"}
    folder = write_package(tmp_path / "p", [obj("v1", "ConfigMap", "a"), waits])
    more = ["-o", str(tmp_path / "p.csar")] if command == "package" else []
    assert "is not in the package" in tool.run(command, str(folder), *more, code=1).stdout
    if given:
        more += ["--namespace", "blue"]
    else:
        (folder / "request.json").write_text('{"additionalParams": {"namespace": "blue"}}')
    tool.run(command, str(folder), *more)


@pytest.mark.parametrize("text", ["", "[]", '{"additionalParams": 1}', "[" * 9999, '{"additionalParams": {"namespace": ""}}'])
def test_a_request_that_names_no_namespace(tool: Tool, tmp_path: Path, text: str) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    (folder / "request.json").write_text(text)
    assert tool.json("validate", str(folder)) == RIGHT


def test_a_package_is_made_with_values(tool: Tool, tmp_path: Path) -> None:
    parameters = {"SIZE": {"type": "string"}}
    folder = write_package(tmp_path / "p", [crontab_crd(), crontab("${SIZE}")], parameters=parameters)
    assert "Parameters without a default" in tool.run("package", str(folder), "-o", str(tmp_path / "p.csar")).stdout
    shown = tool.run("package", str(folder), "-o", str(tmp_path / "p.csar"), "--param", "SIZE=a").stdout
    assert "Parameters" not in shown
