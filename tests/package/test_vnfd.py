# SPDX-License-Identifier: Apache-2.0
"""The TOSCA files of a package."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.package import vnfd

TWICE = """
topology_template:
  node_templates:
    Web: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: web}}
    Db: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: db}}
    Web: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: other}}
"""


def definitions(folder: Path, text: str) -> dict[str, object]:
    (folder / "Definitions").mkdir()
    (folder / "Definitions/vnfd.yaml").write_text(text)
    return dict(vnfd.definitions(folder))


def test_two_vdus_of_one_id_are_refused_with_the_lines_of_both(tmp_path: Path) -> None:
    """YAML would keep the last one only, without a word."""
    words = "Definitions/vnfd.yaml: node_templates has two nodes of the id Web, in line 4 and in line 6"
    with pytest.raises(InvalidPackage, match=words):
        definitions(tmp_path, TWICE)


@pytest.mark.parametrize("text", ["topology_template:", "topology_template: {node_templates: [a, a]}", "{a: 1, a: 2}"])
def test_other_forms_are_left_to_tacker(tmp_path: Path, text: str) -> None:
    assert definitions(tmp_path, text)


@pytest.mark.parametrize("number", ["1" + ":1" * 100_000, "9" * 5000], ids=["base 60", "base 10"])
def test_a_long_number_is_refused_at_once(tmp_path: Path, number: str) -> None:
    """PyYAML takes quadratic time for one in base 60: half an hour for 4 MiB."""
    began = time.thread_time()
    with pytest.raises(InvalidPackage, match="is not YAML: a number has more than 1,000 characters"):
        definitions(tmp_path, f"metadata: {{a: {number}}}")
    assert time.thread_time() - began < 1
