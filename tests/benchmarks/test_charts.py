# SPDX-License-Identifier: Apache-2.0
"""The measure of charts: what it says of one that Tacker accepts, and of one that is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import charts
from tests.cli import helm

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


def test_the_list_has_names_and_commits_only() -> None:
    head, *rows = [line.split("\t") for line in LIST.read_text().splitlines()]
    assert head == ["name", "repository", "commit", "folder", "part"]
    assert len({row[0] for row in rows}) == len(rows) == 60
    assert all(re.fullmatch("[0-9a-f]{40}", row[2]) for row in rows)
    assert [row[4] for row in rows].count("last") == 20
