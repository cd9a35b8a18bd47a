# SPDX-License-Identifier: Apache-2.0
"""Templates of Helm and kustomizations that nobody has rendered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.package import leftovers
from tests.instance import config_map, obj


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        (
            "a.yaml",
            "kind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n",
            "leftover",
            "a.yaml, line 2: has a template of Helm",
        ),
        ("a.yaml", "{{- if .Values.on }}\nkind: ConfigMap\n", "leftover", "line 1"),
        ("a.yaml", "kind: ConfigMap\ntext: {{ labels }}\n", "manifest", "PROBLEM"),
        ("kustomization.yaml", "resources:\n- a.yaml\n", "leftover", "is a kustomization, which kubectl renders"),
        ("k.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", "leftover", "is a kustomization"),
        ("flux.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n", "manifest", "PROBLEM"),
    ],
)
def test_a_document_that_was_never_meant_to_be_applied(tmp_path: Path, name: str, text: str, code: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    found = leftovers.instead(tmp_path, f"{name}, document 1: PROBLEM")
    assert found[0] == code
    assert words in found[1]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (config_map("a", text="{{ .Values.x }}"), ""),
        (obj("monitoring.coreos.com/v1", "PrometheusRule", "r", spec={"summary": "{{ $labels.pod }} {{ $value }}"}), ""),
        (
            obj("a.example/v1", "Rule", "r", spec={"summary": "{{ with $labels.pod -}} on {{ . }} {{- end }} {{ if .Value }}"}),
            "",
        ),
        (obj("v1", "Service", "s", spec={"a": "{{- if $.Values.on }}x{{ end }}"}), "spec.a"),
        (obj("argoproj.io/v1alpha1", "Workflow", "w", spec={"args": ["{{inputs.parameters.x}}"]}), ""),
        (obj("v1", "Service", "s", spec={"selector": {"app": "{{ .Values.app }}"}}), "spec.selector.app"),
        (obj("v1", "Service", "s", spec={"ports": [{"name": '{{ include "web.name" . }}'}]}), "spec.ports[0].name"),
    ],
)
def test_a_template_in_a_field(given: Any, field: str) -> None:
    found = list(leftovers.problems([given]))
    assert (f": {field}: has a template of Helm" in found[0]) if field else not found
