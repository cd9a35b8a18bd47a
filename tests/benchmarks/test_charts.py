# SPDX-License-Identifier: Apache-2.0
"""The measure of charts: what it says of one that Tacker accepts, and of one that is refused."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import pytest
import yaml

from benchmarks import charts, without_images
from benchmarks.charts import Outcome
from benchmarks.without_images import Tried
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.keys import Object, annotations_of, key_of
from k8s_cr_driver.objects.rule_texts import READY_WHEN, STORED
from tests.cli import helm
from tests.cli.tool import Tool
from tests.fake_api import FakeApi
from tests.instance import config_map, crontab, crontab_crd, deployment, job, kept, obj, state, wait_for

LIST = Path(charts.__file__).with_name("charts.tsv")
CHART = {
    "Chart.yaml": "name: web\nversion: 1.2.3\n",
    "values.yaml": "selector: web\n",
    "templates/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: "{{ .Values.selector }}"}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
""",
}


@pytest.fixture
def chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in CHART.items():
        path = tmp_path / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    helm.install(tmp_path / "bin", monkeypatch)
    return tmp_path / "web"


def test_a_chart_that_becomes_a_package(chart: Path) -> None:
    assert charts.measure(chart)[:3] == ("web", "", ())


def test_a_refusal_has_its_line_and_its_remedy(chart: Path) -> None:
    (chart / "values.yaml").write_text("selector: other\n")
    found = charts.measure(chart)
    assert found.refused_by == "init"
    [line] = found.why
    assert re.search(r"matchLabels\.app: has another value .*; write the same label .*Files/kubernetes/web\.yaml:\d+", line)


@pytest.fixture
def tool(api: FakeApi, tmp_path: Path) -> Tool:
    return Tool(api, tmp_path)


@pytest.fixture
def with_a_kind(chart: Path) -> Path:
    """The chart, with a kind of its own, an object of it that it keeps, one of another kind, and one elsewhere."""
    stays = crontab("kept")
    stays["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    (chart / "crds").mkdir()
    (chart / "crds/crontab.yaml").write_text(yaml.safe_dump(crontab_crd()))
    others = obj("monitoring.example.com/v1", "Rule", "of-others", "default")
    manifests = [stays, others, config_map("own"), config_map("there", "elsewhere")]
    (chart / "templates/others.yaml").write_text(yaml.safe_dump_all(manifests))
    return chart


def test_what_needs_no_image_is_instantiated_and_removed(api: FakeApi, tool: Tool, with_a_kind: Path) -> None:
    before = state(api)
    found = charts.measure(with_a_kind, tool.kubeconfig)
    assert (found.refused_by, found.why, found.tried) == ("", (), Tried(4, 6, [], []))
    assert state(api) == before
    sent = {one.path.rpartition("/")[2] for one in api.requests.writes if one.method == "PATCH"}
    assert {"crontabs.stable.example.com", "kept", "own", "elsewhere", "there"} <= sent
    assert sent.isdisjoint({"web", "of-others"})


def test_what_is_left_is_named(
    api: FakeApi, tool: Tool, with_a_kind: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def act() -> None:
        wait_for(api, lambda: api.find("ConfigMap", "default", "own") is not None)
        api.put(config_map("of-a-controller"))

    monkeypatch.setattr(without_images, "_GONE_WITHIN", 0.0)
    controller = threading.Thread(target=act)
    controller.start()
    found = charts.measure(with_a_kind, tool.kubeconfig)
    controller.join()
    assert found.left == ["ConfigMap default/of-a-controller"]
    charts.show([found])
    assert "web: left: ConfigMap default/of-a-controller\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("manifest", "annotations"),
    [
        (config_map("own"), {READY_WHEN: STORED}),
        (kept(config_map("own")), {READY_WHEN: STORED}),
        (crontab("of-a-crd"), {READY_WHEN: STORED}),
        (obj("v1", "Secret", "own", "default"), {READY_WHEN: STORED}),
        (crontab_crd(), {}),
        (obj("apiregistration.k8s.io/v1", "APIService", "v1.local", spec={"group": "local"}), {READY_WHEN: STORED}),
        (obj("apiregistration.k8s.io/v1", "APIService", "v1.served", spec={"service": {"name": "web"}}), None),
        (obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "web"), None),
        (obj("v1", "Pod", "web", "default"), None),
        (deployment(), None),
        (job("once", "web"), None),
        (obj("monitoring.example.com/v1", "Rule", "of-others", "default"), None),
    ],
    ids=lambda one: f"{one['kind']} {one['metadata']['name']}" if one and "kind" in one else "",
)
def test_objects_that_need_no_image(manifest: Object, annotations: dict[str, str] | None) -> None:
    found = without_images.without_images([manifest, crontab_crd()], is_builtin)
    mine = [one for one in found if key_of(one) == key_of(manifest)]
    assert [annotations_of(one) for one in mine[:1]] == ([] if annotations is None else [annotations])


def test_an_operation_that_fails_and_what_is_left_are_shown(api: FakeApi, tool: Tool, with_a_kind: Path) -> None:
    api.put(config_map("own"))
    found = charts.measure(with_a_kind, tool.kubeconfig)
    assert found.tried and "ConfigMap default/own" in found.tried.failed[0]
    assert not found.is_good


@pytest.mark.parametrize(
    ("tried", "code"),
    [(None, 0), (Tried(2, 3, (), ()), 0), (Tried(2, 3, ["Error: it"], ()), 1), (Tried(2, 3, (), ["ConfigMap default/own"]), 1)],
)
def test_the_exit_code(tried: Tried | None, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "measure", lambda *_: Outcome("web", "", (), 1.0, tried))
    monkeypatch.setattr(sys, "argv", ["charts", "web"])
    with pytest.raises(SystemExit) as end:
        charts.main()
    assert int(end.value.code or 0) == code


def test_the_list_has_names_and_commits_only() -> None:
    head, *rows = [line.split("\t") for line in LIST.read_text().splitlines()]
    assert head == ["name", "repository", "commit", "folder", "part"]
    assert len({row[0] for row in rows}) == len(rows) == 60
    assert all(re.fullmatch("[0-9a-f]{40}", row[2]) for row in rows)
    assert [row[4] for row in rows].count("last") == 20
