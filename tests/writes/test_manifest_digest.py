# SPDX-License-Identifier: Apache-2.0
"""An object is replaced if its manifest has changed, not if a webhook has changed the object."""

from __future__ import annotations

import copy

from k8s_cr_driver.objects.keys import Object, annotations_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.writes.manifest_digest import MANIFEST, digest_of, is_of_manifest
from tests.fake_api import FakeApi, controllers
from tests.instance import BLUE, GREEN, Instance, config_map, job, kept, obj
from tests.writes.test_replacement import OF_TEMPLATE, invalid, refuse, uid_of

POD = obj("v1", "Pod", "one", "default", spec={"containers": [{"name": "c", "image": "i", "resources": {}}]})
OF_POD = ("FieldValueForbidden", "spec", "Forbidden: pod updates may not change fields other than `spec.tolerations`")


def changed_by_a_webhook(api: FakeApi, manifest: Object = POD) -> tuple[Instance, str]:
    """An instance with a Pod whose next applies are refused, and the uid of the Pod."""
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([manifest])
    refuse(api, POD, invalid(OF_POD))
    return blue, uid_of(api, POD)


def test_a_pod_that_a_webhook_has_changed_stays_until_its_manifest_changes(api: FakeApi) -> None:
    blue, before = changed_by_a_webhook(api)
    blue.reconcile([POD, config_map("a")])
    assert uid_of(api, POD) == before
    newer = copy.deepcopy(POD)
    newer["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    blue.reconcile([newer, config_map("a")])
    assert uid_of(api, POD) != before


def test_a_label_that_others_have_removed_since_is_restored(api: FakeApi) -> None:
    """The API server refuses the whole apply, so the Pod is replaced."""
    labelled = copy.deepcopy(POD)
    labelled["metadata"]["labels"] = {"app": "one"}
    blue, before = changed_by_a_webhook(api, labelled)
    api.edit("Pod", "default", "one", lambda live: live["metadata"]["labels"].pop("app") and None)
    blue.reconcile([labelled])
    live = api.get("Pod", "default", "one")
    assert live["metadata"]["uid"] != before and live["metadata"]["labels"]["app"] == "one"


def test_a_frozen_config_map_is_replaced(api: FakeApi) -> None:
    """A user has removed a key and then frozen it: what is immutable now could change before."""
    manifest = config_map("c", a="1", b="2")
    manifest["metadata"]["annotations"] = {"k8s-cr-driver/replace": "true"}
    blue = Instance(api.url)
    blue.reconcile([manifest])
    api.edit("ConfigMap", "default", "c", lambda live: live["data"].pop("b") and None)
    refuse(api, manifest, invalid(("FieldValueForbidden", "data", "field is immutable when `immutable` is set")))
    blue.reconcile([manifest])
    assert api.get("ConfigMap", "default", "c")["data"] == {"a": "1", "b": "2"}


def test_only_pods_and_jobs_have_the_digest(api: FakeApi) -> None:
    controllers.run_workloads(api)
    Instance(api.url).reconcile([POD, config_map("a"), obj("v1", "Namespace", "n")])
    assert annotations_of(api.get("Pod", "default", "one"))[MANIFEST] == digest_of(POD)
    assert MANIFEST not in annotations_of(api.get("ConfigMap", "default", "a"))
    assert MANIFEST not in annotations_of(api.get("Namespace", None, "n"))


def test_a_copied_annotation_says_nothing(api: FakeApi) -> None:
    controllers.run_workloads(api)
    Instance(api.url).reconcile([POD])
    live = api.get("Pod", "default", "one")
    assert is_of_manifest(live, POD, BLUE) is True
    assert is_of_manifest(live, {**POD, "spec": {}}, BLUE) is False
    assert is_of_manifest(live, POD, GREEN) is None


def test_what_an_object_waits_for_is_no_part_of_its_digest() -> None:
    waiting = copy.deepcopy(POD)
    waiting["metadata"]["annotations"] = {"config.kubernetes.io/depends-on": "batch/namespaces/default/Job/one"}
    empty = copy.deepcopy(POD)
    empty["metadata"]["annotations"] = {}
    assert digest_of(waiting) == digest_of(empty)


def test_a_kept_object_that_a_webhook_has_changed_is_applied_again(api: FakeApi) -> None:
    controllers.run_workloads(api)
    for manifest, words in ((kept(POD), OF_POD), (kept(job("two", "i:1")), OF_TEMPLATE)):
        blue = Instance(api.url)
        blue.reconcile([manifest])
        before = uid_of(api, manifest)
        refuse(api, manifest, invalid(words))
        blue.reconcile([manifest, config_map("a")], prune=False)
        assert uid_of(api, manifest) == before


def test_an_object_that_a_webhook_has_changed_gets_its_label_back(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([POD])
    api.edit("Pod", "default", "one", lambda live: live["metadata"]["labels"].pop(INSTANCE_LABEL))
    refuse(api, POD, invalid(OF_POD))
    before = uid_of(api, POD)
    blue.reconcile([POD], prune=False)
    assert INSTANCE_LABEL in labels(api.get("Pod", "default", "one")) and uid_of(api, POD) == before


def test_what_others_have_set_is_no_webhooks_doing_if_it_is_taken_by_force(api: FakeApi) -> None:
    controllers.run_workloads(api)
    mine, theirs = ({"key": name, "operator": "Exists"} for name in ("mine", "theirs"))
    pod = copy.deepcopy(POD)
    pod["spec"]["tolerations"] = [mine]
    Instance(api.url).reconcile([pod])
    before = uid_of(api, pod)
    api.edit("Pod", "default", "one", lambda live: live["spec"].update(tolerations=[mine, theirs]), manager="kubectl-edit")
    words = ("FieldValueForbidden", "spec.tolerations", "Forbidden: existing toleration can not be modified")
    is_old = lambda request: request.query.get("force") == "true" and uid_of(api, pod) == before  # noqa: E731
    api.fail(invalid(words), method="PATCH", path="/pods/one", when=is_old, times=99)
    Instance(api.url, force=True).reconcile([pod])
    assert api.get("Pod", "default", "one")["spec"]["tolerations"] == [mine]
