# SPDX-License-Identifier: Apache-2.0
"""Where a finding is in the files of a package."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_cr_driver.package.places import NOWHERE, Place, Places

MANIFEST = """\
---
---
kind: Deployment
metadata:
  name: web
  annotations: {a.b/c: x}
spec:
  containers:
    - name: c
      env:
        - name: A
---
kind: List
items:
  - kind: Service
    spec: {port: 80}
"""
VNFD = """\
topology_template:
  node_templates:
    Web:
      type: x
  policies:
    - steps:
        type: y
"""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "Definitions").mkdir()
    (tmp_path / "a.yaml").write_text(MANIFEST)
    (tmp_path / "Definitions/v.yaml").write_text(VNFD)
    found = Places(tmp_path)
    found.sources = {"Deployment.apps default/web": "a.yaml, document 2", "Service s": "a.yaml, document 3, items[0]"}
    found.flavours = {"simple": "Definitions/v.yaml"}
    return found


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "Deployment.apps default/web: spec.containers[0].env[0]: is x",
            Place("a.yaml", 2, 11, 11, "spec.containers[0].env[0]"),
        ),
        (
            "Deployment.apps default/web: spec.containers[0].image: is missing",
            Place("a.yaml", 2, 9, 7, "spec.containers[0].image"),
        ),
        ("Deployment.apps default/web: metadata.annotations.a.b/c: x", Place("a.yaml", 2, 6, 17, "metadata.annotations.a.b/c")),
        ("Service s: spec.port: is x", Place("a.yaml", 3, 16, 12, "spec.port")),
        ("a.yaml, document 2, Deployment web: metadata.name: is x", Place("a.yaml", 2, 5, 3, "metadata.name")),
        ("a.yaml, document 2, line 7: mapping values are not allowed", Place("a.yaml", 2, 7)),
        ("a.yaml, line 4: is not UTF-8", Place("a.yaml", 0, 4)),
        ("Flavour simple: VDU Web is several objects", Place("Definitions/v.yaml", 1, 3, 5)),
        ("Flavour simple: policy steps: the target", Place("Definitions/v.yaml", 1, 6, 7)),
        ("Flavour other: VDU Web is", Place("")),
        ("Definitions/v.yaml: imports x, which is not in the package", Place("Definitions/v.yaml")),
        ("Parameters without a default: A", NOWHERE),
        ("b.yaml, document 1: is gone", Place("b.yaml", 1)),
    ],
)
def test_the_place_of_a_sentence(places: Places, text: str, place: Place) -> None:
    assert places.of(text)[:4] == place[:4]
    assert not place.field or places.of(text).field == place.field
