# SPDX-License-Identifier: Apache-2.0
"""Webhooks and policies of the instance that the set does not have do not judge the set."""

from __future__ import annotations

import pytest

from k8s_cr_driver.errors import Forbidden
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, config_map, kept, obj

GROUP = "admissionregistration.k8s.io/v1"
POLICY, OTHER = obj(GROUP, "ValidatingWebhookConfiguration", "p"), obj(GROUP, "MutatingWebhookConfiguration", "p")
DENIED = faults.status(403, "Forbidden", 'admission webhook "p.example.com" denied the request: no')


def deny(api: FakeApi, *, lag: int = 0) -> None:
    """The policy denies changes of a ConfigMap as long as it is there, and for so many requests more."""
    late = [True] * lag

    def is_denied(request: object) -> bool:
        return bool(api.names("MutatingWebhookConfiguration")) or bool(late and late.pop())

    api.fail(DENIED, method="PATCH", path="/configmaps/a$", when=is_denied, times=99)


@pytest.mark.parametrize("lag", [0, 2])
def test_a_rollback_is_not_refused_by_the_policy_of_the_change(api: FakeApi, lag: int) -> None:
    Instance(api.url).reconcile([config_map("a", a="1")])
    Instance(api.url).reconcile([config_map("a", a="2"), POLICY, OTHER])
    deny(api, lag=lag)
    Instance(api.url, yields=True).reconcile([config_map("a", a="1")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"a": "1"}
    assert not api.names("ValidatingWebhookConfiguration") and not api.names("MutatingWebhookConfiguration")


def test_a_policy_of_the_set_still_judges_it(api: FakeApi) -> None:
    Instance(api.url).reconcile([config_map("a", a="1"), POLICY, OTHER])
    deny(api)
    with pytest.raises(Forbidden, match="denied the request"):
        Instance(api.url).reconcile([config_map("a", a="2"), POLICY, OTHER])
    assert api.names("MutatingWebhookConfiguration") == ["p"]


def test_a_policy_of_others_or_that_is_kept_stays(api: FakeApi) -> None:
    api.put(obj(GROUP, "ValidatingWebhookConfiguration", "theirs"))
    Instance(api.url).reconcile([config_map("a", a="1"), kept(POLICY)])
    Instance(api.url).reconcile([config_map("a", a="2")])
    assert sorted(api.names("ValidatingWebhookConfiguration")) == ["p", "theirs"]
