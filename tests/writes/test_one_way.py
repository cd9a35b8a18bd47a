# SPDX-License-Identifier: Apache-2.0
"""A rollback ends though the API server does not take a field back that the failed change has written; so does a heal."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.errors import Refused
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.writes.one_way import with_kept
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import Instance, config_map, obj
from tests.writes.test_replacement import forbidden, invalid

SMALLER = ("FieldValueForbidden", "data.size", "Forbidden: field can not be less than previous value")
FROZEN = ("FieldValueForbidden", "immutable", "Forbidden: field is immutable when `immutable` is set")


def only_grows(api: FakeApi, answer: faults.Answer) -> None:
    """One value can become no smaller than 2, as the size of a volume claim."""

    def is_smaller(request: Request) -> bool:
        return request.path.endswith("configmaps/one") and request.body["data"]["size"] < "2"

    api.fail(answer, method="PATCH", when=is_smaller, times=99)


FORMER = [config_map("one", size="1", other="old"), config_map("a", x="old")]


@pytest.fixture
def changed(api: FakeApi) -> FakeApi:
    """After a change that has failed for another reason."""
    blue = Instance(api.url)
    blue.reconcile(FORMER)
    blue.reconcile([config_map("one", size="2", other="new"), config_map("a", x="new"), config_map("b")])
    return api


def test_a_rollback_leaves_what_only_grows_and_restores_the_rest(changed: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    only_grows(changed, invalid(SMALLER))
    Instance(changed.url, yields=True, keeps_versions=True).reconcile(FORMER)
    assert changed.get("ConfigMap", "default", "one")["data"] == {"size": "2", "other": "old"}
    assert changed.get("ConfigMap", "default", "a")["data"] == {"x": "old"}
    assert changed.find("ConfigMap", "default", "b") is None
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert any("ConfigMap default/one keeps" in one and "data.size" in one for one in warnings)


def test_a_heal_after_it_keeps_it_too(changed: FakeApi) -> None:
    only_grows(changed, invalid(SMALLER))
    Instance(changed.url, keeps_versions=True).reconcile(FORMER, prune=False)
    assert changed.get("ConfigMap", "default", "one")["data"]["size"] == "2"


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({}, invalid(SMALLER)),
        ({"yields": True, "keeps_versions": True}, forbidden('admission webhook "x" denied the request: freeze', 422)),
        ({"yields": True, "keeps_versions": True}, invalid(("FieldValueInvalid", "data.more", "Invalid value"))),
    ],
    ids=["a change", "denied by a webhook", "another field"],
)
def test_other_refusals_end_the_operation(changed: FakeApi, options: dict[str, Any], answer: faults.Answer) -> None:
    only_grows(changed, answer)
    with pytest.raises(Refused):
        Instance(changed.url, **options).reconcile(FORMER)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_a_rollback_replaces_what_the_change_has_made_immutable(api: FakeApi, kind: str) -> None:
    former = obj("v1", kind, "one", "default", data={"x": "b2xk"})
    Instance(api.url).reconcile([former])
    Instance(api.url).reconcile([{**former, "data": {"x": "bmV3"}, "immutable": True}])
    uid = api.get(kind, "default", "one")["metadata"]["uid"]

    def thaws(request: Request) -> bool:
        live = api.find(kind, "default", "one")
        is_apply = request.path.endswith("s/one") and live is not None and live["metadata"]["uid"] == uid
        return is_apply and "immutable" not in request.body

    api.fail(invalid(FROZEN), method="PATCH", when=thaws, times=99)
    Instance(api.url, yields=True, keeps_versions=True).reconcile([former])
    live = api.get(kind, "default", "one")
    assert (live["data"], live.get("immutable"), live["metadata"]["uid"] == uid) == ({"x": "b2xk"}, None, False)


@pytest.mark.parametrize(
    ("manifest", "live", "fields", "expected"),
    [
        ({"a": {"size": "1Gi"}}, {"a": {"size": "2Gi"}}, ["a.size"], {"a": {"size": "2Gi"}}),
        ({"a": {"x": 1}}, {"a": {"x": 2, "zone": "z"}}, ["a"], {"a": {"x": 1, "zone": "z"}}),
        ({"a": {"x": 1, "y": 1}}, {"a": {"x": 2, "y": 2, "z": 2}}, ["a.x", "a"], {"a": {"x": 2, "y": 1, "z": 2}}),
        ({"a": {"b": {"x": 1}}}, {"a": {"b": {"x": 2, "y": 2}}}, ["a"], {"a": {"b": {"x": 1, "y": 2}}}),
        ({"a": {}}, {"a": {"b": {"c": 1}}}, ["a.b.c"], {"a": {"b": {"c": 1}}}),
        ({"a": {"list": [1]}}, {"a": {"list": [1, 2]}}, ["a.list[1].x"], {"a": {"list": [1, 2]}}),
        ({"a": {"x": 1}}, {"a": {}}, ["a.x", "<nil>", ""], {"a": {"x": 1}}),
        ({"metadata": {"x": 1}}, {"metadata": {"x": 2}}, ["metadata.x"], {"metadata": {"x": 1}}),
    ],
)
def test_which_values_stay(manifest: Object, live: Object, fields: list[str], expected: Object) -> None:
    assert with_kept(manifest, live, fields) == expected
