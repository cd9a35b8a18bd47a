# SPDX-License-Identifier: Apache-2.0
"""A timeout reports the Pods that an object controls, and not those of others that its selector finds."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import Instance, controlled_by, obj

LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
SPEC = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
WEB = obj("apps/v1", "Deployment", "web", "default", spec=SPEC)


def failed_pod(name: str, owner: Object | None = None) -> Object:
    pod = obj("v1", "Pod", name, "default", spec=TEMPLATE["spec"], status={"phase": "Failed", "message": f"that of {name}"})
    pod["metadata"]["labels"] = LABELS
    return owned(owner, pod) if owner else pod


def owned(owner: Object, live: Object) -> Object:
    live["metadata"]["ownerReferences"] = [controlled_by(owner)]
    return live


def test_pods_of_others_are_in_no_report(api: FakeApi) -> None:
    blue = Instance(api.url, seconds=0.7)
    with pytest.raises(NotReady):
        blue.reconcile([WEB])
    spec = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    ours, theirs = (obj("apps/v1", "ReplicaSet", name, "default", spec=spec) for name in ("web-1", "x"))
    api.put(owned(api.get("Deployment", "default", "web"), ours))
    api.put(theirs)
    api.put(failed_pod("mine", api.get("ReplicaSet", "default", "web-1")))
    api.put(failed_pod("of-another", api.get("ReplicaSet", "default", "x")))
    api.put(failed_pod("bare"))
    with pytest.raises(NotReady) as raised:
        blue.reconcile([WEB])
    assert "that of mine" in str(raised.value)
    assert "of-another" not in str(raised.value) and "bare" not in str(raised.value)
