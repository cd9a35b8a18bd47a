# SPDX-License-Identifier: Apache-2.0
"""Versions of a CRD in which objects are stored, and which no change and no rollback can take back (case 22)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import obj
from tests.lcm.instance import instantiated
from tests.lcm.web import deployment

GROUP = "mesh.example.org"
ROUTE_SPEC = {"type": "object", "properties": {"host": {"type": "string"}}}


def definition(kind: str, schema: Object, *versions: str, **more: Any) -> Object:
    """A CRD of these versions, the last of which is stored."""
    plural = f"{kind.lower()}s"
    return obj(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.{GROUP}",
        spec={
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[-1],
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
                    **more,
                }
                for name in versions
            ],
        },
    )


def routes(*versions: str, host: str) -> list[Object]:
    """The CRD, and an object in its last version."""
    route = obj(f"{GROUP}/{versions[-1]}", "Route", "one", "default", spec={"host": host})
    return [definition("Route", {"spec": ROUTE_SPEC}, *versions), route]


GATE = definition(
    "Gate",
    {"spec": {"type": "object"}, "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}},
    "v1",
    subresources={"status": {}},
)
WEB = deployment(1)
V1 = [WEB, *routes("v1", host="a.example.org")]
V2 = [WEB, *routes("v1", "v2", host="b.example.org")]
V3 = [WEB, *routes("v2", host="c.example.org")]
NEVER_READY = [GATE, obj(f"{GROUP}/v1", "Gate", "never-ready", "default", spec={})]


def crd(cluster: FakeApi) -> Object:
    return cluster.get("CustomResourceDefinition", None, f"routes.{GROUP}")


def test_a_rollback_keeps_the_version_that_the_failed_change_has_stored(
    cluster: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blue = instantiated(cluster, tmp_path / "v1", V1)
    with pytest.raises(sol_ex.SolException, match="never-ready"):
        blue.change(blue.package([*V2, *NEVER_READY]), **{"wait-timeout": 5})
    assert crd(cluster)["status"]["storedVersions"] == ["v1", "v2"]
    with caplog.at_level(logging.WARNING):
        blue.roll_back_change()
    kept = {version["name"]: (version["served"], version["storage"]) for version in crd(cluster)["spec"]["versions"]}
    assert kept == {"v1": (True, True), "v2": (True, False)}
    assert cluster.get("Route", "default", "one")["spec"] == {"host": "a.example.org"}
    assert cluster.find("CustomResourceDefinition", None, f"gates.{GROUP}") is None
    (warning,) = [text for text in caplog.messages if "keeps v2" in text]
    assert f"CustomResourceDefinition.apiextensions.k8s.io routes.{GROUP}" in warning
    blue.heal()
    blue.change(blue.package(V2))
    blue.terminate()


def test_a_change_that_drops_a_stored_version_is_refused_and_its_rollback_completes(cluster: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(cluster, tmp_path / "v1", V1)
    blue.vnfd = blue.package(V2)
    blue.change(blue.vnfd)
    with pytest.raises(sol_ex.SolException, match=r"missing from spec.versions.*status.storedVersions"):
        blue.change(blue.package(V3))
    blue.roll_back_change()
    assert cluster.get("Route", "default", "one")["spec"] == {"host": "b.example.org"}
    assert [version["name"] for version in crd(cluster)["spec"]["versions"]] == ["v1", "v2"]
