# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr init` of a chart: what helm renders, its values as parameters, and what a second rendering changes."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.cli import helm
from tests.cli.onboarding import onboard
from tests.cli.test_init import manifests, vnfd
from tests.cli.tool import Tool
from tests.instance import crontab_crd

CHART = {
    "Chart.yaml": "name: web\nversion: 1.2.3\nappVersion: '4.5'\ndescription: A server\nmaintainers: [{name: Ann}]\n",
    "values.yaml": "image: {tag: '4.5'}\nreplicas: 2\nname: web\nlimits: {cpu: 1}\nrequest: 1\ndebug: false\n",
    "templates/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: "{{ .Release.Namespace }}"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: "example.org/web:{{ .Values.image.tag }}"
          command: [sh, -c, 'echo ${HOME} $${X}']
          tty: {{ .Values.debug }}
          resources:
            limits:
              cpu: {{ .Values.limits.cpu times2 }}
            requests: {cpu: {{ .Values.request }}}
""",
    "templates/hook.yaml": """\
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
""",
}
PARAMETERS = ["--param", "TAG=image.tag", "--param", "REPLICAS=replicas"]
RANDOM_NAME = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: once-{{ random }}\n"
RANDOM = "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: {password: '{{ random }}'}\n"


@pytest.fixture
def chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "chart"
    for name, text in CHART.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    archive = tmp_path / "web.tgz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(root, "web")
    helm.install(tmp_path / "bin", monkeypatch, archive)
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "web"


def test_a_chart_becomes_a_package_that_tacker_accepts(tool: Tool, chart: Path, folder: Path, tmp_path: Path) -> None:
    (chart / "crds").mkdir()
    (chart / "crds/crontab.yaml").write_text(str(crontab_crd()))
    tool.run("init", str(folder), "--from", str(chart), "--namespace", "blue", "--set", "replicas=3")
    tool.run("package", str(folder), "-o", str(tmp_path / "web.csar"))
    vnf, flavours, _ = onboard(tmp_path / "web.csar", tmp_path)
    assert (vnf["descriptor_version"], vnf["software_version"], vnf["provider"]) == ("1.2.3", "4.5", "Ann")
    assert flavours[0]["instantiation_levels"]["levels"]["default"]["scale_info"]["web"] == {"scale_level": 2}
    assert [one["kind"] for one in manifests(folder)] == ["CustomResourceDefinition", "Job", "Deployment", "Namespace"]
    waits = manifests(folder)[2]["metadata"]["annotations"]["config.kubernetes.io/depends-on"]
    assert waits == "batch/namespaces/blue/Job/migrate"


@pytest.mark.parametrize("source", ["chart", "web.tgz"])
@pytest.mark.parametrize("options", [[], ["--param", "TAG=image.tag"]])
def test_rules_of_a_chart_are_those_of_the_package(
    tool: Tool, chart: Path, folder: Path, source: str, options: list[str]
) -> None:
    rules = "healthCheckExprs:\n- {group: apps, kind: Deployment, current: 'status.?readyReplicas.orValue(0) > 0'}\n"
    (chart / "health.yaml").write_text(rules)
    with tarfile.open(chart.parent / "web.tgz", "w:gz") as file:
        file.add(chart, "web")
    shown = tool.run("init", str(folder), "--from", str(chart.parent / source), *options).stdout
    assert (folder / "Files/kubernetes/health.yaml").read_text() == rules
    assert "readiness rules for kinds" in shown and "health.yaml" not in (folder / "request.json").read_text()
    (chart / "health.yaml").write_text("timeout: 5\n")  # a chart's own, and none of rules
    tool.run("init", str(folder.parent / "other"), "--from", str(chart), *options)
    assert not (folder.parent / "other/Files/kubernetes/health.yaml").exists()


@pytest.mark.parametrize("source", ["web.tgz", "oci://example.org/charts/web", "repository/web"])
def test_an_archive_and_a_chart_elsewhere(
    tool: Tool, chart: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.chdir(chart.parent)
    tool.run("init", str(folder), "--from", source)
    assert {one["metadata"]["name"] for one in manifests(folder)} == {"web", "migrate"}


def test_a_chart_that_is_not_there(tool: Tool, chart: Path, folder: Path) -> None:
    assert "helm pull: Error: not found" in tool.run("init", str(folder), "--from", "repository/missing", code=1).stderr


def test_a_folder_with_charts_in_it_is_told_from_one_of_manifests(tool: Tool, chart: Path, folder: Path) -> None:
    inner = chart / "charts/inner"
    inner.mkdir(parents=True)
    (inner / "Chart.yaml").write_text("name: inner\nversion: 1.0.0\n")
    (chart / "templates/if.yaml").write_text("{{ if .Values.debug }}\na: [\n{{ end }}\n")
    said = tool.run("init", str(folder), "--from", str(chart.parent), code=1).stderr
    assert f"is no chart, but has some; name one: {chart} (" in said


def test_values_become_parameters(tool: Tool, chart: Path, folder: Path) -> None:
    given = ["--param", "TAG=image.tag", "--param", "REPLICAS=replicas", "--param", "DEBUG=debug"]
    tool.run("init", str(folder), "--from", str(chart), *given)
    declared = vnfd(folder)["data_types"]["web.Parameters"]["properties"]
    assert {name: (one["type"], one["default"]) for name, one in declared.items()} == {
        "TAG": ("string", "4.5"),
        "REPLICAS": ("integer", 2),
        "DEBUG": ("boolean", False),
    }
    [made] = (one for one in manifests(folder) if one["kind"] == "Deployment")
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert (made["spec"]["replicas"], container["image"]) == ("${REPLICAS}", "example.org/web:${TAG}")
    assert (container["command"][2], container["tty"]) == ("echo $${HOME} $$${X}", "${DEBUG}")
    policies = [next(iter(one)) for one in vnfd(folder)["topology_template"]["policies"]]
    assert "web_level" not in policies
    assert tool.json("validate", str(folder))["problems"] == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("CPU=limits.cpu", "spec.template.spec.containers[0].resources.limits.cpu: the chart computes it from limits.cpu"),
        ("CPU=request", "request of the chart (--param CPU): the chart does not take a text there"),
        ("TAG=image.tga", "the chart's values have no tga; did you mean tag?"),
        ("X=limits", "is a mapping in the chart's values"),
    ],
)
def test_a_value_that_cannot_be_a_parameter(tool: Tool, chart: Path, folder: Path, given: str, expected: str) -> None:
    more = ["--param", "TAG=image.tag"] if not given.startswith("TAG") else []
    assert expected in tool.run("init", str(folder), "--from", str(chart), "--param", given, *more, code=1).stderr
    assert not folder.exists()


def test_a_value_that_names_an_object_may_be_a_parameter_but_not_one_that_decides(
    tool: Tool, chart: Path, folder: Path
) -> None:
    (chart / "templates/name.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Values.name }}'}\n")
    tool.run("init", str(folder), "--from", str(chart), "--param", "NAME=name")
    assert "${NAME}" in {one["metadata"]["name"] for one in manifests(folder)}


def test_the_default_of_a_parameter_is_the_value_that_was_given(tool: Tool, chart: Path, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("image: {tag: '7'}\n")
    given = [
        "--values",
        str(tmp_path / "values.yaml"),
        "--set",
        "replicas=5",
        "--param",
        "T=image.tag",
        "--param",
        "N=replicas",
    ]
    tool.run("init", str(folder), "--from", str(chart), *given)
    declared = vnfd(folder)["data_types"]["web.Parameters"]["properties"]
    assert [declared[name]["default"] for name in ("T", "N")] == ["7", 5]


def test_what_a_second_rendering_changes_is_named_without_its_value(tool: Tool, chart: Path, folder: Path) -> None:
    (chart / "templates/secret.yaml").write_text(RANDOM)
    shown = tool.run("init", str(folder), "--from", str(chart)).stdout
    [line] = (line for line in shown.splitlines() if line.startswith("Secret password"))
    [secret] = (one for one in manifests(folder) if one["kind"] == "Secret")
    assert "stringData.password: as it was rendered" in line
    assert "existingSecret" in line
    assert secret["stringData"]["password"] not in shown


@pytest.mark.parametrize("template", [RANDOM, RANDOM_NAME, RANDOM_NAME + "  annotations: {helm.sh/hook: test}\n"])
def test_what_a_chart_renders_at_random_is_not_blamed_on_a_parameter(
    tool: Tool, chart: Path, folder: Path, template: str
) -> None:
    (chart / "templates/random.yaml").write_text(template)
    tool.run("init", str(folder), "--from", str(chart), *PARAMETERS)
    assert "${REPLICAS}" in (folder / "Files/kubernetes/web.yaml").read_text()


def test_a_hook_that_is_left_out_is_not_asked_for_a_name(tool: Tool, chart: Path, folder: Path) -> None:
    (chart / "templates/random.yaml").write_text(RANDOM_NAME + "  annotations: {helm.sh/hook: test}\n")
    shown = tool.run("init", str(folder), "--from", str(chart)).stdout
    [line] = (line for line in shown.splitlines() if "once-" in line)
    assert "left out" in line


SCHEMA = {
    "properties": {
        "replicas": {"type": "integer"},
        "image": {"type": "object", "properties": {"tag": {"enum": ["4.5", "4.6"]}}},
    }
}


def test_a_value_of_which_the_chart_has_a_schema_may_be_a_parameter(tool: Tool, chart: Path, folder: Path) -> None:
    (chart / "values.schema.json").write_text(json.dumps(SCHEMA))
    tool.run("init", str(folder), "--from", str(chart), *PARAMETERS)
    text = (folder / "Files/kubernetes/web.yaml").read_text()
    assert ("replicas: ${REPLICAS}" in text, "web:${TAG}" in text) == (True, True)


def test_a_value_that_the_schema_refuses_is_refused_with_the_lines_of_helm(tool: Tool, chart: Path, folder: Path) -> None:
    (chart / "values.schema.json").write_text(json.dumps(SCHEMA))
    shown = tool.run("init", str(folder), "--from", str(chart), "--set", "replicas=two", *PARAMETERS, code=1).stderr
    assert shown.splitlines()[-1].startswith("  - at '/replicas': got str, want integer")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("replica=3", "did you mean replicas?"),
        ("image.tga=1", "did you mean tag?"),
        ("image.tag=1,image.tga=1", "did you mean tag?"),
        ("image.tag=1,image.digest=1,global.a=2,annotations.a=1", ""),
    ],
)
def test_a_set_value_that_the_chart_does_not_have_is_named(
    tool: Tool, chart: Path, folder: Path, given: str, expected: str
) -> None:
    edit(chart / "values.yaml", "name: web", "name: web\nannotations: {}")
    shown = tool.run("init", str(folder), "--from", str(chart), "--set", given).stdout
    assert expected in shown
    assert ("values have no" in shown) is bool(expected)


def test_what_a_chart_asks_the_cluster_is_named(tool: Tool, chart: Path, folder: Path) -> None:
    text = '# {{- lookup "v1" "Secret" "a" "b" }} {{- .Capabilities.APIVersions.Has "a/v1" }}\n'.replace("{{-", "{{").replace(
        "{{ ", "{"
    )
    (chart / "templates/asks.yaml").write_text(text + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    shown = tool.run("init", str(folder), "--from", str(chart)).stdout
    assert [line.split("  ")[0] for line in shown.splitlines() if "asked by templates/asks.yaml" in line] == [
        "lookup",
        ".Capabilities.APIVersions",
    ]


def test_helm_is_told_what_every_cluster_serves(tool: Tool, chart: Path, folder: Path) -> None:
    (chart / "templates/api.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Served }}'}\n")
    tool.run("init", str(folder), "--from", str(chart), "--api-versions", "a.example.com/v1")
    assert "apiregistration.k8s.io-v1.a.example.com-v1" in {one["metadata"]["name"] for one in manifests(folder)}


def test_without_helm_the_remedy_is_named(
    tool: Tool, chart: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    shown = tool.run("init", str(folder), "--from", str(chart), code=2).stderr
    assert "helm is not installed; install Helm 3, or give what it renders" in shown


def test_options_of_charts_are_for_charts(tool: Tool, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CHART["templates/hook.yaml"])
    for option in (["--set", "a=b"], ["--version", "1"], ["--param", "A=b"]):
        assert "only charts have" in tool.run("init", str(folder), "--from", str(tmp_path / "a.yaml"), *option, code=2).stderr


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def id_of(folder: Path) -> str:
    return str(vnfd(folder)["topology_template"]["node_templates"]["VNF"]["properties"]["descriptor_id"])


@pytest.mark.parametrize(("levels", "code"), [(3, 0), (300, 1)])
def test_charts_within_each_other_have_a_limit(tool: Tool, chart: Path, folder: Path, levels: int, code: int) -> None:
    """Each is an archive in the folder `charts` of the next."""
    inner, content = chart / "charts/inner.tgz", b""
    inner.parent.mkdir()
    for level in range(levels):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            member = tarfile.TarInfo(f"inner/charts/c{level}.tgz" if level else "inner/templates/a.yaml")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        content = packed.getvalue()
    inner.write_bytes(content)
    shown = tool.run("init", str(folder), "--from", str(chart), code=code).stderr
    assert ("is a chart within 5 others" in shown) is bool(code)


def test_a_newer_chart_updates_what_was_made_and_keeps_what_the_author_changed(
    tool: Tool, chart: Path, folder: Path, tmp_path: Path
) -> None:
    tool.run(
        "init", str(folder), "--from", str(chart), "--param", "TAG=image.tag", "--set", "debug=true", "--namespace", "blue"
    )
    first = id_of(folder)
    edit(folder / "Definitions/web.yaml", "max_number_of_instances: 12", "max_number_of_instances: 5")
    edit(folder / "Files/kubernetes/web.yaml", "name: migrate", "name: migrate  # once")
    (folder / "Files/kubernetes/mine.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n")
    edit(chart / "Chart.yaml", "1.2.3", "1.3.0")
    edit(chart / "templates/web.yaml", "command: [sh", "command: [bash")
    shown = tool.run("init", str(folder), "--from", str(chart))
    assert "As before: namespace, given, sets" in shown.stderr and "debug" not in shown.stderr
    assert "Updated" in shown.stderr
    text = (folder / "Files/kubernetes/web.yaml").read_text()
    assert ("# once" in text, "- bash" in text, "tty: true" in text, "${TAG}" in text) == (True,) * 4
    definition = (folder / "Definitions/web.yaml").read_text()
    assert ("max_number_of_instances: 5" in definition, "1.3.0" in definition, first in definition) == (True, True, False)
    assert (folder / "Files/kubernetes/mine.yaml").exists()
    tool.run("package", str(folder), "-o", str(tmp_path / "web.csar"))
    assert onboard(tmp_path / "web.csar", tmp_path)[0]["descriptor_version"] == "1.3.0"


def test_the_same_chart_again_changes_nothing(tool: Tool, chart: Path, folder: Path) -> None:
    tool.run("init", str(folder), "--from", str(chart))
    before = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}
    said = tool.run("init", str(folder), "--from", str(chart)).stderr
    assert said == f"Nothing to update in {folder}: 0 errors, 0 warnings, 0 conflicts\n"
    assert {path: path.read_text() for path in folder.rglob("*") if path.is_file()} == before


def test_only_its_owner_reads_the_values_that_were_set(tool: Tool, chart: Path, folder: Path) -> None:
    tool.run("init", str(folder), "--from", str(chart))
    assert (folder / ".k8s-cr-init").stat().st_mode & 0o077 == 0


def test_a_conflict_is_named_and_the_author_s_text_stays(tool: Tool, chart: Path, folder: Path) -> None:
    tool.run("init", str(folder), "--from", str(chart))
    edit(folder / "Files/kubernetes/web.yaml", "web:4.5", "web:mine")
    edit(chart / "values.yaml", "tag: '4.5'", "tag: '4.6'")
    shown = tool.run("init", str(folder), "--from", str(chart), code=1).stdout
    [line] = (line for line in shown.splitlines() if line.startswith("conflict:"))
    number = int(line.split("line ")[1].split(":")[0])
    assert "web:mine" in (folder / "Files/kubernetes/web.yaml").read_text().splitlines()[number - 1]
    assert "web:4.6" in (folder / ".k8s-cr-init/made/Files/kubernetes/web.yaml").read_text()
    assert "conflict" not in tool.run("init", str(folder), "--from", str(chart)).stdout


def test_what_a_change_to_the_new_package_cannot_apply_is_said(tool: Tool, chart: Path, folder: Path) -> None:
    tool.run("init", str(folder), "--from", str(chart))
    edit(chart / "templates/web.yaml", "matchLabels: {app: web}", "matchLabels: {app: web, b: c}")
    edit(chart / "templates/web.yaml", "metadata: {labels: {app: web}}", "metadata: {labels: {app: web, b: c}}")
    result = tool.run("init", str(folder), "--from", str(chart), code=1)
    assert "spec.selector is immutable and changes" in result.stdout
    assert "from the package before to this one is among the findings [update]" in result.stderr


def test_a_run_that_was_killed_is_finished_by_the_next(
    tool: Tool, chart: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool.run("init", str(folder), "--from", str(chart))
    edit(chart / "templates/web.yaml", "command: [sh", "command: [bash")
    with monkeypatch.context() as patch:
        patch.setattr("k8s_cr_driver.cli.init_state.record", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        tool.run("init", str(folder), "--from", str(chart), code=130)
    tool.run("init", str(folder), "--from", str(chart))
    assert "- bash" in (folder / "Files/kubernetes/web.yaml").read_text()
    assert "Nothing to update" in tool.run("init", str(folder), "--from", str(chart)).stderr


def test_a_link_out_of_the_folder_is_not_written_to(tool: Tool, chart: Path, folder: Path, tmp_path: Path) -> None:
    tool.run("init", str(folder), "--from", str(chart))
    (folder / "request.json").unlink()
    (tmp_path / "outside").write_text("x")
    (folder / "request.json").symlink_to(tmp_path / "outside")
    assert "leads out of the folder" in tool.run("init", str(folder), "--from", str(chart), code=1).stderr
