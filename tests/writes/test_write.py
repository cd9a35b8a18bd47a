# SPDX-License-Identifier: Apache-2.0
"""An apply changes the object that was looked at, and no other one that has got its name since."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver.errors import Conflict, NotOurs, Refused
from k8s_cr_driver.journal.fence import Fence
from k8s_cr_driver.kube.client import ONLY_NEW
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import GREEN, Instance, config_map, obj, replaced, state

USERS = config_map("a", users="data")


def before_apply(api: FakeApi, happens: Callable[[], Any]) -> list[str]:
    """Does it once, after the object was looked at and before it is changed; the list shows whether it has."""
    done: list[str] = []

    def when(request: Request) -> bool:
        if not done and request.body["metadata"].get("resourceVersion") != ONLY_NEW:
            done.append(request.path)
            happens()
        return False

    api.fail(faults.internal(), method="PATCH", path="configmaps/a$", when=when, times=10**6)
    return done


def taken(api: FakeApi, users: Object = USERS) -> Callable[[], Any]:
    """A user deletes the object and creates one of its name."""

    def happens() -> None:
        api.delete(users["kind"], "default", "a")
        api.put(users, manager="user")

    return happens


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("users", [USERS, config_map("a", mine="2")], ids=["other fields", "conflict"])
def test_a_users_object_is_not_changed_in_place_of_a_deleted_one(
    api: FakeApi, is_known: bool, force: bool, users: Object
) -> None:
    blue = Instance(api.url, force=force)
    blue.reconcile([config_map("a", mine="1")])
    if not is_known:
        replaced(api, "ConfigMap", "default", "a")
    done = before_apply(api, taken(api, users))
    with pytest.raises((NotOurs, Conflict)):
        blue.reconcile([config_map("a", mine="3")])
    api.clear_faults()
    blue.terminate()
    assert done
    assert api.get("ConfigMap", "default", "a")["data"] == users["data"]


def test_an_object_that_is_deleted_before_it_is_changed_is_created_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a", mine="1")])
    done = before_apply(api, lambda: api.delete("ConfigMap", "default", "a"))
    blue.reconcile([config_map("a", mine="2")])
    assert done
    assert api.get("ConfigMap", "default", "a")["data"] == {"mine": "2"}


def test_an_object_that_is_created_in_place_of_an_adopted_one_is_deleted(api: FakeApi) -> None:
    api.put(USERS, manager="user")
    blue = Instance(api.url, adopt=True)
    done = before_apply(api, lambda: api.delete("ConfigMap", "default", "a"))
    blue.reconcile([config_map("a", mine="1")])
    assert done
    blue.terminate()
    assert api.find("ConfigMap", "default", "a") is None


@pytest.mark.parametrize("kind, name", [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")])
def test_what_kubernetes_puts_into_a_namespace_of_the_instance_is_the_instances(api: FakeApi, kind: str, name: str) -> None:
    blue, home = Instance(api.url), obj("v1", "Namespace", "home")
    blue.reconcile([home])
    api.put(obj("v1", kind, name, "home"), manager="kube-controller-manager")
    brought = obj("v1", kind, name, "home")
    brought["metadata"]["annotations"] = {"brought": "true"}
    blue.reconcile([home, brought])
    assert api.get(kind, "home", name)["metadata"]["annotations"]["brought"] == "true"
    blue.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("whose", ["nobody's", "two instances'"])
def test_what_kubernetes_puts_into_a_namespace_of_others_is_theirs(api: FakeApi, whose: str) -> None:
    blue, home = Instance(api.url), obj("v1", "Namespace", "home")
    if whose == "nobody's":
        api.put(home)
    else:
        for one in (blue, Instance(api.url, GREEN)):
            one.reconcile([home])
    account = api.put(obj("v1", "ServiceAccount", "default", "home"), manager="kube-controller-manager")
    with pytest.raises(NotOurs):
        blue.reconcile([*([] if whose == "nobody's" else [home]), obj("v1", "ServiceAccount", "default", "home")])
    assert api.get("ServiceAccount", "home", "default") == account


def test_the_fence_is_asked_immediately_before_each_write(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The response to a read may take longer than another worker waits for this one."""
    api.put(config_map("theirs", x="1"), manager="user")
    done: list[str] = []
    ask = Fence.before_write

    def asked(fence: Fence) -> None:
        done.append("fence")
        ask(fence)

    def sent(request: Request) -> bool:
        done.append(request.method)
        return False

    monkeypatch.setattr(Fence, "before_write", asked)
    api.fail(faults.internal(), path="configmaps/theirs$", when=sent, times=10**6)
    Instance(api.url, adopt=True).reconcile([config_map("theirs", y="2")])
    assert done.count("PATCH") == 3
    assert all(before == "fence" for before, now in itertools.pairwise(["", *done]) if now == "PATCH")


@pytest.mark.parametrize("code", [400, 402, 406, 410, 418, 422])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_denial_with_any_code_is_a_refusal_that_names_the_object(api: FakeApi, code: int, is_there: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a", x="1")] if is_there else [])
    api.fail(faults.denied("no such size", code, "NotAcceptable"), method="PATCH", path="configmaps/a$", times=99)
    with pytest.raises(Refused, match=r'^ConfigMap default/a: admission webhook "\S+" denied the request: no such size$'):
        blue.reconcile([config_map("a", x="2")])


@pytest.mark.parametrize("code", [404, 409, 429, 500, 503])
def test_a_denial_that_may_pass_by_its_code_is_repeated(api: FakeApi, code: int) -> None:
    """With 404 a webhook may miss an object of the set."""
    named = {"name": "a", "kind": "configmaps"}
    api.fail(faults.denied("not yet", code, "Later", details=named), method="PATCH", path="configmaps/a$", times=2)
    Instance(api.url).reconcile([config_map("a")])
    assert api.find("ConfigMap", "default", "a")


def test_a_denial_is_no_conflict_of_fields_whatever_its_causes(api: FakeApi) -> None:
    blue = Instance(api.url, force=True)
    blue.reconcile([config_map("a", x="1")])
    causes = {"causes": [{"reason": "FieldManagerConflict", "message": "is in use", "field": ".data.x"}]}
    api.fail(faults.denied("in use", 409, "Conflict", details=causes), method="PATCH", path="configmaps/a$")
    blue.reconcile([config_map("a", x="2")])
    assert not [one for one in api.requests.select("PATCH", "configmaps/a") if one.query.get("force") == "true"]
