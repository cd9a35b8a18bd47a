# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a VNFD that Tacker's parser does not see, or refuses without a name."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.package import vnfd_rules

NODE = {"type": "tosca.nodes.nfv.Vdu.Compute"}


def nodes(**changes: Any) -> dict[str, Any]:
    return {"topology_template": {"node_templates": {"Web": {**NODE, **changes}}}}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (nodes(properties={"a": 1}, requirements=[{"a": "b"}]), ""),
        (nodes(type=None), "node_templates.Web.type: is missing or no text"),
        (nodes(properties=[]), "node_templates.Web.properties: is a list, must be a mapping"),
        (nodes(requirements={}), "node_templates.Web.requirements: is a mapping, must be a list"),
        ({"topology_template": {"node_templates": {"Web": None}}}, "node_templates.Web: is null, must be a mapping with type"),
        ({"topology_template": {"policies": {"a": {}}}}, "policies: is a mapping, must be a list"),
        ({"topology_template": {"policies": [{"a": {}, "b": {}}]}}, "policies[0]: must be a mapping with one policy"),
        ({"imports": "a.yaml"}, "imports: is text, must be a list of files"),
    ],
)
def test_parts_of_another_form(content: dict[str, Any], problem: str) -> None:
    found = list(vnfd_rules.problems({"v.yaml": content}))
    assert (
        (f"Definitions/v.yaml: {'topology_template.' if 'imports' not in problem else ''}{problem}" in found[0])
        if problem
        else not found
    )


def test_flavours_have_one_descriptor_id() -> None:
    one, other = (nodes(properties={"descriptor_id": id}) for id in ("a", "b"))
    assert not list(vnfd_rules.problems({"one.yaml": one, "two.yaml": one}))
    [problem] = vnfd_rules.problems({"one.yaml": one, "two.yaml": other})
    assert "several descriptor_id, a in one.yaml and b in two.yaml; a package has one" in problem
