# SPDX-License-Identifier: Apache-2.0
"""A package that uses a version of a kind which the API server does not prefer, and whose fields have other names there."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, verbs, watch
from tests.instance import obj
from tests.lcm.instance import Instance
from tests.times import change_times

GROUP = "stable.example.com"
OLD = f"{GROUP}/v1beta1"
RENAMED = {"spec": ("size", "replicas"), "status": ("phase", "state")}
"""The name of a field in v1beta1, which is stored, and in v1."""


def converted(kind: Any, live: Object) -> Object:
    """As a conversion webhook does."""
    if (kind.kind, kind.version) != ("Db", "v1"):
        return live
    live = copy.deepcopy(live)
    for part, (old, new) in RENAMED.items():
        if old in live.get(part, {}):
            live[part][new] = live[part].pop(old)
    return live


@pytest.fixture(autouse=True)
def conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (verbs, watch):
        monkeypatch.setattr(module, "shown", lambda kind, live, shown=module.shown: converted(kind, shown(kind, live)))


def crd(*, scales_in: tuple[str, ...] = ("v1beta1", "v1")) -> Object:
    versions = []
    for number, name in enumerate(("v1beta1", "v1")):
        count, state = (RENAMED[part][number] for part in ("spec", "status"))
        spec = {"type": "object", "properties": {count: {"type": "integer"}, "image": {"type": "string"}}}
        status = {"type": "object", "properties": {state: {"type": "string"}}}
        scale = {"specReplicasPath": f".spec.{count}", "statusReplicasPath": ".status.count"}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
        subresources = {"status": {}, **({"scale": scale} if name in scales_in else {})}
        one = {"name": name, "served": True, "storage": number == 0, "schema": schema, "subresources": subresources}
        versions.append(one)
    spec = {"group": GROUP, "scope": "Namespaced", "names": {"plural": "dbs", "kind": "Db"}, "versions": versions}
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"dbs.{GROUP}", spec=spec)


def db(image: str = "a") -> Object:
    return obj(OLD, "Db", "web", "default", spec={"size": 1, "image": image})


def instantiated(api: FakeApi, folder: Path, definition: Object) -> Instance:
    """Its controller sets a status that the object does not have, and no other."""

    def act(live: Object) -> None:
        if not live.get("status"):
            api.set_status("Db", "default", "web", {"phase": "Ready"}, api_version=OLD)

    api.react("Db", act)
    blue = Instance(api, folder / "old", [definition, db()])
    blue.instantiate()
    return blue


@pytest.mark.parametrize("scales_in", [("v1beta1", "v1"), ("v1beta1",)])
def test_a_scale_finds_the_count_under_its_name_in_the_version_of_the_package(
    api: FakeApi, tmp_path: Path, scales_in: tuple[str, ...]
) -> None:
    blue = instantiated(api, tmp_path, crd(scales_in=scales_in))
    blue.scale("SCALE_OUT", 1)
    assert api.get("Db", "default", "web", OLD)["spec"]["size"] == 3


def test_a_status_of_before_the_change_is_no_newer_one_because_it_was_converted(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, silence=30.0)
    blue = instantiated(api, tmp_path, crd())
    with pytest.raises(sol_ex.SolException, match="StatusOlderThanSpec"):
        blue.change(blue.package([crd(), db("b")]), **{"wait-timeout": 5})


def test_what_only_the_preferred_version_says_counts(api: FakeApi, tmp_path: Path) -> None:
    """Its controller reports that it is not ready, in a field that the package's version does not have."""
    definition = crd()
    definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"] = {
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    waiting = {"type": "Ready", "status": "False", "reason": "Starting", "message": ""}
    waiting["lastTransitionTime"] = "2026-01-01T00:00:00Z"

    def act(live: Object) -> None:
        if not live.get("status"):
            api.set_status("Db", "default", "web", {"conditions": [waiting], "phase": ""}, api_version=f"{GROUP}/v1")

    api.react("Db", act)
    with pytest.raises(sol_ex.SolException, match="Ready is False"):
        Instance(api, tmp_path, [definition, db()]).instantiate(**{"wait-timeout": 2})
