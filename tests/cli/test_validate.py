# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr validate`: what is wrong with a package, and what a change to it cannot take over."""

import contextlib
import json
import operator
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import Object, key_of
from k8s_cr_driver.package import csar
from tests.cli.packages import META, write_package
from tests.cli.tool import Tool
from tests.instance import config_map, crontab, crontab_crd, deployment, obj, stateful_set

WRONG_HASH = f"{META}\nName: Files/kubernetes/all.yaml\nAlgorithm: SHA-256\nHash: {'0' * 64}\n"
RIGHT: dict[str, list[Any]] = {"problems": [], "warnings": [], "findings": [], "scripts": []}
"""What is reported of a package without mistakes and scripts."""


def test_a_good_package_has_no_findings_and_needs_no_cluster(tool: Tool, tmp_path: Path) -> None:
    tool.kubeconfig.unlink()
    folder = write_package(tmp_path / "p", [crontab_crd(), crontab("one"), deployment()], vdus={"Web": "web"})
    assert tool.json("validate", str(folder)) == RIGHT
    archive = csar.write(folder, tmp_path / "p.csar")
    assert tool.run("validate", str(archive)).stderr == f"{archive}: 0 errors, 0 warnings\n"


def annotated(made: Object, **annotations: str) -> Object:
    made["metadata"]["annotations"] = annotations
    return made


def control_plane(replicas: object) -> Object:
    return obj("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "cp", "default", spec={"replicas": replicas})


def hooks() -> list[Object]:
    pod = obj("v1", "Pod", "nrf-try", spec={"containers": [{"name": "c", "image": "i"}]})
    return [annotated(pod, **{"helm.sh/hook": "test"}), annotated(config_map("seed"), **{"helm.sh/hook": "post-install"})]


def spec(kind: str = "CronTab", **fields: Any) -> Object:
    return obj("stable.example.com/v1", kind, "one", spec=fields)


CONTROL: dict[str, Any] = {"vdus": {"Control": "cp"}}
COUNT = {**CONTROL, "parameters": {"COUNT": {"type": "integer", "default": 2}}}
SAMPLED = {**CONTROL, "parameters": {"COUNT": {"type": "integer", "constraints": [{"in_range": [2, 4]}]}}}
NO_COUNT = f"VDU Control is {key_of(control_plane(1))}, spec.replicas: cannot be 2: etcd "
WANTED = {"parameters": {"NAME": {"type": "string"}, "SIZE": {"type": "integer"}}}
NO_CRD = (
    "CronTab.stable.example.com (db): the cluster must have its CustomResourceDefinition, or instantiate is refused; "
    "add it to the package if nobody else installs it"
)
OLD = [obj("extensions/v1beta1", "Ingress", "a", spec={}), obj("policy/v1beta1", "PodDisruptionBudget", "b", spec={})]
INSTEAD = [
    "Kubernetes 1.36 does not serve extensions/v1beta1 Ingress; write networking.k8s.io/v1 Ingress",
    "Kubernetes 1.36 does not serve policy/v1beta1 PodDisruptionBudget; write policy/v1 PodDisruptionBudget",
]
FOREIGN = [obj("example.com/v1", "Other", "one"), obj("example.com/v1", "Other", "web")]
HOOK = "helm-hooks is not set: Helm runs it as hook test (helm.sh/hook)"


def volume(**source: Any) -> Object:
    return deployment(volumes=[{"name": "v", **source}])


def binding(name: str) -> Object:
    return obj("rbac.authorization.k8s.io/v1", "RoleBinding", "x", roleRef={"kind": "Role", "name": name})


@pytest.mark.parametrize(
    ("objects", "package", "arguments", "errors", "warnings"),
    [
        ([crontab_crd(), spec(cronSpek="x")], {}, [], ["spec.cronSpek: unknown field"], []),
        ([crontab_crd(), spec(cronSpec="${SIZE}", cronSpek="x")], WANTED, [], ["spec.cronSpek: unknown field"], None),
        (OLD, {}, [], INSTEAD, None),
        ([deployment()], {"vdus": {"Db": "db"}}, [], ["Flavour simple: VDU Db is no object of the manifests"], []),
        (FOREIGN, {"vdus": {"Db": "db", "Web": "web"}}, [], ["Flavour simple: VDU Db is "], ["VDU Web", "Other.example"]),
        ([crontab("db")], {"vdus": {"Db": "db"}}, [], [], ["VDU Db is no object", NO_CRD]),
        ([control_plane("${COUNT}")], COUNT, [], [NO_COUNT], None),
        ([control_plane("${COUNT}")], COUNT, ["--param", "COUNT=3"], [], None),
        ([control_plane("${COUNT}")], SAMPLED, [], [], None),
        ([control_plane(2)], {**CONTROL, "levels": {"a": 1}}, [], [], None),
        ([volume(configMap={"name": "a"})], {}, [], [], ["ConfigMap default/a"]),
        ([volume(persistentVolumeClaim={"claimName": "a"})], {}, [], [], ["PersistentVolumeClaim default/a"]),
        ([deployment(serviceAccountName="a")], {}, [], [], ["ServiceAccount default/a"]),
        ([config_map("x", "a")], {}, [], [], ["Namespace a"]),
        ([binding("a")], {}, [], [], ["/a,"]),
        ([volume(configMap={"name": "a", "optional": True})], {}, [], [], []),
        ([volume(configMap={"name": "a"}), config_map("a")], {}, [], [], []),
        ([deployment(serviceAccountName="default")], {}, [], [], []),
        ([config_map("x", "kube-system")], {}, [], [], []),
        ([deployment(), *hooks()], {}, [], [], [f"Pod nrf-try: is not applied, as {HOOK}"]),
        ([deployment(), *hooks()], {}, ["--helm-hooks"], [], ["Pod nrf-try: is applied as any other object"]),
    ],
)
def test_what_is_found_in_a_package(
    tool: Tool,
    tmp_path: Path,
    objects: list[Object],
    package: dict[str, Any],
    arguments: list[str],
    errors: list[str],
    warnings: list[str] | None,
) -> None:
    found = tool.judged(write_package(tmp_path / "p", objects, **package), *arguments, code=bool(errors))
    assert_has(found, errors, warnings)


def assert_has(found: tuple[list[str], list[str]], errors: list[str], warnings: list[str] | None) -> None:
    """Each is in one of them, in their order; None for any warnings."""
    for texts, expected in zip(found, (errors, warnings), strict=True):
        if expected is not None:
            assert len(texts) == len(expected) and all(map(operator.contains, texts, expected)), texts


def claim(storage: str) -> Object:
    return obj("v1", "PersistentVolumeClaim", "records", spec={"resources": {"requests": {"storage": storage}}})


def versions(*names: str, **of_first: Any) -> Object:
    """A CRD with these versions, of which the last is stored."""
    made = crontab_crd()
    (version,) = made["spec"]["versions"]
    last = names[-1]
    made["spec"]["versions"] = [{**version, "storage": name == last, "name": name, **of_first} for name in names]
    made["spec"]["versions"][-1]["served"] = True
    return made


def narrower() -> Object:
    made = crontab_crd()
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {}
    return made


SHRINKS = "PersistentVolumeClaim default/records: spec.resources.requests.storage is 500Mi and was 10Gi. A volume never shrinks"
VANISH = "VDU Db vanishes, with its VNFCs and their objects"
NEW = "Scaling aspect more is new: Tacker can scale it after its next database synchronization, not before"
WEBS = [deployment(f"web-{index}") for index in range(9)]
OTHERS = [deployment(f"web-{index}", app="other", serviceAccountName="a") for index in range(9)]
NINE = "Deployment.apps default/web-0, Deployment.apps default/web-1, Deployment.apps default/web-2 and 6 more"
IMMUTABLE = "spec.selector is immutable and changes. Keep it, rename the object"
TEXT = {"type": "string"}
DATABASE = stateful_set("db", serviceName="${NAME}")


@pytest.mark.parametrize(
    ("old", "new", "arguments", "errors", "warnings"),
    [
        (([claim("10Gi")], {}), ([claim("500Mi")], {}), [], [SHRINKS], []),
        (([claim("10Gi")], {}), ([claim("10240Mi")], {}), [], [], []),
        (([claim("10Gi")], {}), ([claim("20Gi")], {}), [], [], []),
        (
            ([deployment(), deployment("db")], {"vdus": {"Web": "web", "Db": "db"}, "aspects": ["web"]}),
            ([deployment(app="other")], {"vdus": {"Web": "web"}, "aspects": ["web", "more"]}),
            [],
            [f"Deployment.apps default/web: {IMMUTABLE}"],
            [VANISH, NEW],
        ),
        ((WEBS, {}), (OTHERS, {}), [], [f"{NINE}: {IMMUTABLE}"], [f"{NINE} refer to ServiceAccount default/a, which"]),
        (([deployment()], {}), ([annotated(deployment(app="b"), **{"k8s-cr-driver/replace": "true"})], {}), [], [], None),
        (([crontab_crd()], {}), ([narrower()], {}), [], [], ["spec.cronSpec (v1) is not in the schema"]),
        # Case 22: the API server refuses it once the cluster has stored an object in that version.
        (([versions("v1", "v2")], {}), ([versions("v2")], {}), [], ["crontabs.stable.example.com: version v1 vanishes"], None),
        (([versions("v1", "v2", served=False)], {}), ([versions("v2")], {}), [], [], None),
        (([config_map("a")], {}), ([config_map("a", b="${B}")], {"parameters": {"B": TEXT}}), ["--param", "B=1"], [], []),
        (
            ([DATABASE, config_map("a", x="${OTHER}")], {"parameters": {"NAME": TEXT, "OTHER": TEXT}}),
            ([DATABASE, config_map("a", x="same")], {"parameters": {"NAME": TEXT}}),
            ["--param", "NAME=mydb"],
            [],
            None,
        ),
    ],
)
def test_what_a_change_of_package_cannot_take_over(
    tool: Tool,
    tmp_path: Path,
    old: tuple[list[Object], dict[str, Any]],
    new: tuple[list[Object], dict[str, Any]],
    arguments: list[str],
    errors: list[str],
    warnings: list[str] | None,
) -> None:
    before, after = (write_package(tmp_path / name, one[0], **one[1]) for name, one in (("old", old), ("new", new)))
    assert_has(tool.judged(after, "--update-of", str(before), *arguments, code=bool(errors)), errors, warnings)
    assert tool.judged(after, "--update-of", str(after), *arguments)[0] == []


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
    ("file", "content", "expected"),
    [
        ("Definitions/vnfd.yaml", b"topology_template: text\nimports: 5\n", "flavour_id"),
        ("Definitions/vnfd.yaml", b"topology_template: {substitution_mappings: [1]}\n", "flavour_id"),
        ("Definitions/vnfd.yaml", b"a: \xff\n", "Definitions/vnfd.yaml is not UTF-8"),
        ("Definitions/vnfd.yaml", b"[" * 200_000, "Definitions/vnfd.yaml is not YAML: is nested deeper than 200 levels"),
        ("TOSCA-Metadata/TOSCA.meta", b"\xff\n", "TOSCA.meta is not UTF-8"),
        ("TOSCA-Metadata/TOSCA.meta", b"- a\n", "'key: value'"),
        ("TOSCA-Metadata/TOSCA.meta", WRONG_HASH.encode(), "Hash is not that of the file"),
        ("Files/kubernetes/all.yaml", b"kind: [", "all.yaml"),
        ("Files/kubernetes/one.json", b'{"apiVersion": "v1", "kind": "ConfigMap"', "one.json, document 1"),
        ("Files/kubernetes/one.json", b'{"kind": "A", "metadata": {"name": "a"}}', "one.json, document 1: apiVersion: is"),
        ("Files/kubernetes/one.json", json.dumps({**config_map("b"), "data": {"a": 1}}).encode(), "data.a: is an integer"),
    ],
)
def test_bad_files_are_reported_without_a_traceback(
    tool: Tool, tmp_path: Path, file: str, content: bytes, expected: str
) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    (folder / file).write_bytes(content)
    problems, _ = tool.judged(folder, code=1)
    assert any(expected in problem for problem in problems), problems


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
