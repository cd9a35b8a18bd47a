# SPDX-License-Identifier: Apache-2.0
"""Webhooks and policies of the instance that the set does not have do not judge the set."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.reconcile import Prune
from k8s_cr_driver.errors import Conflict, Forbidden
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, config_map, kept, obj
from tests.vnf.test_session import session

GROUP = "admissionregistration.k8s.io/v1"
POLICY = obj(GROUP, "ValidatingWebhookConfiguration", "p", webhooks=[{"name": "p.example.com"}])
OTHER = obj(GROUP, "MutatingWebhookConfiguration", "q", webhooks=[{"name": "q.example.com"}])
DENIED = faults.status(403, "Forbidden", 'admission webhook "p.example.com" denied the request: no')


def deny(api: FakeApi, *, lag: int = 0) -> None:
    """The policy denies changes of a ConfigMap as long as it is there, and for so many requests more."""
    late = [True] * lag

    def is_denied(request: object) -> bool:
        return bool(api.names("ValidatingWebhookConfiguration")) or bool(late and late.pop())

    api.fail(DENIED, method="PATCH", path="/configmaps/a$", when=is_denied, times=99)


@pytest.mark.parametrize("lag", [0, 2])
def test_a_rollback_is_not_refused_by_the_policy_of_the_change(api: FakeApi, lag: int) -> None:
    Instance(api.url).reconcile([config_map("a", a="1")])
    Instance(api.url).reconcile([config_map("a", a="2"), POLICY, OTHER])
    deny(api, lag=lag)
    Instance(api.url, yields=True).reconcile([config_map("a", a="1")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"a": "1"}
    assert not api.names("ValidatingWebhookConfiguration") and not api.names("MutatingWebhookConfiguration")


def test_what_denies_nothing_stays_until_the_set_is_ready(api: FakeApi) -> None:
    """A change that fails, or dies, leaves the former workload with its policy."""
    Instance(api.url).reconcile([config_map("a", a="1"), POLICY, OTHER])
    api.edit("ConfigMap", "default", "a", lambda live: live["data"].update(a="theirs"), manager="kubectl-edit")
    with pytest.raises(Conflict):
        Instance(api.url).reconcile([config_map("a", a="2")])
    assert api.names("ValidatingWebhookConfiguration") == ["p"]


def test_only_the_one_that_denies_is_deleted_first(api: FakeApi) -> None:
    Instance(api.url).reconcile([config_map("a", a="1"), POLICY, OTHER])
    deny(api)
    left: list[list[str]] = []
    api.react("ConfigMap", lambda live: left.append(api.names("MutatingWebhookConfiguration")))
    Instance(api.url).reconcile([config_map("a", a="2")])
    assert left[0] == ["q"] and not api.names("MutatingWebhookConfiguration")


def test_a_denial_by_what_may_not_be_deleted_is_reported(api: FakeApi) -> None:
    Instance(api.url).reconcile([config_map("a", a="1"), POLICY])
    deny(api)
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="/validatingwebhookconfigurations/p", times=99)
    with pytest.raises(Forbidden, match="denied the request"):
        Instance(api.url).reconcile([config_map("a", a="2")])


def test_a_kept_object_is_not_refused_before_by_the_policy_of_the_change(api: FakeApi) -> None:
    with session(api.url) as first:
        first.reconcile(first.place([kept(config_map("a", a="1"))], {}), prune=Prune(), first=True)
    with session(api.url) as second:
        second.reconcile(second.place([kept(config_map("a", a="2")), POLICY], {}), prune=Prune())
    deny(api)
    with session(api.url) as third:
        third.reconcile(third.place([kept(config_map("a", a="1"))], {}), prune=Prune())
    assert api.get("ConfigMap", "default", "a")["data"] == {"a": "1"}


def test_a_policy_of_the_set_still_judges_it(api: FakeApi) -> None:
    Instance(api.url).reconcile([config_map("a", a="1"), POLICY, OTHER])
    deny(api)
    with pytest.raises(Forbidden, match="denied the request"):
        Instance(api.url).reconcile([config_map("a", a="2"), POLICY, OTHER])
    assert api.names("ValidatingWebhookConfiguration") == ["p"]


def test_a_policy_of_others_or_that_is_kept_stays(api: FakeApi) -> None:
    api.put(obj(GROUP, "ValidatingWebhookConfiguration", "theirs"))
    Instance(api.url).reconcile([config_map("a", a="1"), kept(POLICY)])
    Instance(api.url).reconcile([config_map("a", a="2")])
    assert sorted(api.names("ValidatingWebhookConfiguration")) == ["p", "theirs"]
