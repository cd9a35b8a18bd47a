# SPDX-License-Identifier: Apache-2.0
"""Names of a server that lies reach no log line, error or terminal, and discovery has an end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube import discovery
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.responses import checked
from k8s_cr_driver.objects.keys import GroupKind
from tests.fake_api import FakeApi, faults

ODD = ["a\nb", "a\x1b[2J", "a\u2028b", "a\x85b", "a\u202eb", "a" * 513]


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "resourceVersion"])
@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_a_name_with_control_characters_or_without_end_is_malformed(field: str, text: str) -> None:
    metadata = {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1"}
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    assert checked(live, GroupKind("", "ConfigMap"), "GET a") is live
    with pytest.raises(TransportError, match=r"^GET a: the response is not an object of kind ConfigMap$"):
        checked({**live, "metadata": {**metadata, field: text}}, GroupKind("", "ConfigMap"), "GET a")


def found(api: FakeApi) -> None:
    with Connection(Endpoint(api.url)) as connection:
        discover(connection)


def lie(api: FakeApi, path: str, body: dict[str, Any]) -> None:
    api.fail(faults.lie(json.dumps(body).encode()), path=path)


def test_a_kind_with_control_characters_is_malformed(api: FakeApi) -> None:
    resource = {"resource": "things", "responseKind": {"kind": "Thing\n\x1b[2J"}, "verbs": ["list"]}
    group = {"metadata": {"name": "a"}, "versions": [{"version": "v1", "resources": [resource]}]}
    lie(api, "^/apis$", {"kind": "APIGroupDiscoveryList", "items": [group]})
    with pytest.raises(TransportError, match="GET /apis: the response is malformed"):
        found(api)


def test_kinds_without_end_are_malformed(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "KINDS_LIMIT", 2)
    with pytest.raises(TransportError, match="the response is malformed"):
        found(api)


@pytest.mark.parametrize("where", ["group", "version", "plural", "kind", "verb", "subresource"])
def test_names_of_kinds_without_end_are_malformed(api: FakeApi, where: str) -> None:
    """What discovery has found is remembered for many clusters."""
    names = {**dict.fromkeys(("group", "version", "plural", "kind", "verb", "subresource"), "a"), where: "a" * 1_000_000}
    subresources = [{"subresource": names["subresource"]}]
    kind = {"resource": names["plural"], "scope": "Cluster", "verbs": [names["verb"]], "subresources": subresources}
    version = {"version": names["version"], "resources": [{**kind, "responseKind": {"kind": names["kind"]}}]}
    group = {"metadata": {"name": names["group"]}, "versions": [version]}
    lie(api, "^/apis$", {"kind": "APIGroupDiscoveryList", "items": [group]})
    with pytest.raises(TransportError, match="GET /apis: the response is malformed"):
        found(api)


def test_groups_that_are_down_without_end_are_malformed(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "VERSIONS_LIMIT", 3)
    versions = [{"version": f"v{number}", "freshness": "Stale"} for number in range(4)]
    kind = {"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Cluster", "verbs": ["list"]}
    group = {"metadata": {"name": "a"}, "versions": [{"version": "v0", "resources": [kind]}, *versions]}
    lie(api, "^/apis$", {"kind": "APIGroupDiscoveryList", "items": [group]})
    with pytest.raises(TransportError, match="GET /apis: the response is malformed"):
        found(api)
