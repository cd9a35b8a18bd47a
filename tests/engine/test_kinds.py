# SPDX-License-Identifier: Apache-2.0
"""Kinds of every sort: without watch, without patch, with fields that cannot change, with counts that others hold."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable

import pytest
import urllib3

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.watch import reflectors
from k8s_cr_driver.errors import Conflict, Forbidden, Refused
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import KEEP, is_managed
from k8s_cr_driver.resources.health import silence
from tests.fake_api import FakeApi, controllers, errors, faults
from tests.fake_api.kinds import ALL_VERBS, Kind
from tests.fake_api.recording import Request
from tests.instance import (
    BLUE,
    CONDITIONS,
    Instance,
    annotated,
    config_map,
    crontab,
    crontab_crd,
    job,
    kept,
    obj,
    state,
    stateful_set,
    status,
    wait_for,
)


def serve_unwatched(api: FakeApi) -> None:
    """An aggregated API that can do everything but tell."""
    verbs = ("create", "delete", "get", "list", "patch")
    kind = Kind("quiet.example.com", "v1", "Quiet", "quiets", verbs=verbs, status=True, generation=True, custom=True)
    api.cluster.serve(kind.resource, [kind])


def quiet(name: str) -> Object:
    return obj("quiet.example.com/v1", "Quiet", name, "default", spec={})


def test_a_kind_without_watch_is_listed_until_it_is_ready_and_until_it_is_gone(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflectors, "READ_EVERY", 0.02)
    serve_unwatched(api)
    blue = Instance(api.url)
    run = blue.start([quiet("a"), quiet("b")])
    for name in ("a", "b"):
        blue.wait_until_reported(name, "Waiting")
        api.set_status("Quiet", "default", name, {"conditions": [controllers.condition("Ready")]})
    run.result(10)
    assert not api.requests.select(path="quiets", watch=True)
    api.edit("Quiet", "default", "a", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    run = blue.start([])
    blue.wait_until_reported("a", "deleting")
    api.release("Quiet", "default", "a")
    run.result(10)
    assert state(api) == {}


def test_a_kind_without_watch_is_listed_at_a_bounded_rate(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflectors, "READ_EVERY", 60)
    serve_unwatched(api)
    with pytest.raises(NotReady):
        Instance(api.url, seconds=0.3).reconcile([quiet("a"), quiet("b")])
    assert len(api.requests.select("GET", "v1/quiets")) == 1


def test_a_kind_that_can_only_be_created_is_posted_once_and_not_waited_for(api: FakeApi) -> None:
    review = obj("authentication.k8s.io/v1", "TokenReview", "check", spec={"token": "t"})
    blue = Instance(api.url)
    blue.reconcile([review])
    assert [request.method for request in api.requests.select(path="tokenreviews")] == ["POST"]
    blue.terminate()
    assert state(api) == {}


def test_an_unknown_kind_is_refused_before_anything_is_written(api: FakeApi) -> None:
    with pytest.raises(Refused, match=r"unknown kind: stable.example.com/v1 CronTab"):
        Instance(api.url).reconcile([config_map("a"), crontab("one")])
    assert state(api) == {}


def test_a_version_that_the_cluster_does_not_serve_is_refused(api: FakeApi) -> None:
    api.put(crontab_crd())
    with pytest.raises(Refused, match=r"unknown kind: stable.example.com/v7 CronTab"):
        Instance(api.url).reconcile([{**crontab("one"), "apiVersion": "stable.example.com/v7"}])


REPLACE = {"k8s-cr-driver/replace": "true"}


def fixed(value: str, **annotations: str) -> Object:
    """An object whose data cannot change."""
    made = {**config_map("a", a=value), "immutable": True}
    made["metadata"]["annotations"] = annotations
    return made


POLICY = obj("networking.k8s.io/v1", "NetworkPolicy", "p", "default", spec={"podSelector": {}})


def serve_policies_unlisted(api: FakeApi) -> None:
    kind = api.cluster.by_kind("NetworkPolicy")
    verbs = tuple(sorted({*ALL_VERBS} - {"list", "watch", "deletecollection"}))
    api.cluster.serve(kind.resource, [dataclasses.replace(kind, verbs=verbs)])


def test_a_kind_that_cannot_be_listed_is_refused_before_the_first_write(api: FakeApi) -> None:
    serve_policies_unlisted(api)
    with pytest.raises(Refused, match=r"NetworkPolicy\S+ default/p: the cluster cannot list networkpolicies"):
        Instance(api.url).reconcile([POLICY, config_map("a")])
    assert api.names("ConfigMap") == []


@pytest.mark.parametrize("abandon", [False, True])
def test_objects_that_cannot_be_listed_any_more_are_left_behind_only_by_abandon(api: FakeApi, abandon: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([POLICY, config_map("a")])
    serve_policies_unlisted(api)
    blue.abandon = abandon
    with contextlib.nullcontext() if abandon else pytest.raises(Refused, match=r"NetworkPolicy.*cannot list.*abandon: true"):
        blue.terminate()
    assert ("a" in api.names("ConfigMap")) is not abandon
    assert api.names("NetworkPolicy") == ["p"]


def test_an_immutable_object_is_replaced_only_where_its_annotation_says_so(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([fixed("1")])
    with pytest.raises(Refused, match=r"ConfigMap default/a.*immutable.*k8s-cr-driver/replace: \"true\""):
        blue.reconcile([fixed("2")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"a": "1"}
    blue.reconcile([fixed("2", **REPLACE)])
    assert api.get("ConfigMap", "default", "a")["data"] == {"a": "2"}


def deployment(replicas: int, image: str = "one") -> Object:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return obj("apps/v1", "Deployment", "web", "default", spec=spec)


def scale(api: FakeApi, replicas: int) -> None:
    """As a HorizontalPodAutoscaler does it: through the scale subresource, as a manager of its own."""
    path = f"{api.url}/apis/apps/v1/namespaces/default/deployments/web/scale"
    body = {"spec": {"replicas": replicas}}
    with urllib3.PoolManager() as pool:
        answer = pool.request("PATCH", path, json=body, headers={"Content-Type": "application/merge-patch+json"})
        assert answer.status == 200, answer.data


def test_an_autoscaler_keeps_its_count_while_the_rest_changes(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([deployment(1)])
    scale(api, 3)
    blue.reconcile([deployment(1, "two")])
    live = api.get("Deployment", "default", "web")
    assert live["spec"]["replicas"] == 3
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "two"


def test_a_scale_that_an_autoscaler_would_undo_fails_and_names_the_field(api: FakeApi) -> None:
    controllers.run_workloads(api)
    Instance(api.url).reconcile([deployment(1)])
    scale(api, 3)
    with pytest.raises(Conflict, match=r"Deployment.apps default/web.*\.spec\.replicas") as raised:
        Instance(api.url, keep_autoscaled=False).reconcile([deployment(2)], prune=False)
    assert raised.value.fields == (".spec.replicas",)
    assert api.get("Deployment", "default", "web")["spec"]["replicas"] == 3


@pytest.mark.usefixtures("failed_soon")
def test_only_a_scale_minds_that_its_count_is_reset(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([deployment(1)])
    api.react("Deployment", lambda live: scale(api, 3) if live["spec"]["replicas"] == 2 else None)
    with pytest.raises(NotReady, match=r"CountReset\): spec.replicas is 3 instead of 2: \S+ has set it"):
        Instance(api.url, keep_autoscaled=False).reconcile([deployment(2)], prune=False)
    blue.reconcile([deployment(2)])
    assert api.get("Deployment", "default", "web")["spec"]["replicas"] == 3


def test_a_field_of_another_manager_is_taken_only_by_force(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a", x="ours")])
    api.edit("ConfigMap", "default", "a", lambda live: live["data"].update(x="theirs"), manager="kubectl-edit")
    with pytest.raises(Conflict, match=r"\.data\.x .*kubectl-edit.*force-conflicts: true"):
        blue.reconcile([config_map("a", x="new")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "theirs"}
    Instance(api.url, force=True).reconcile([config_map("a", x="new")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "new"}


def test_a_manifest_that_the_server_finds_wrong_is_refused_in_its_words(api: FakeApi) -> None:
    with pytest.raises(Refused, match=r"CronTab.stable.example.com default/one: .*spec\.cronSpec"):
        wrong = crontab("one")
        wrong["spec"]["cronSpec"] = 7
        Instance(api.url).reconcile([crontab_crd(), wrong])


@pytest.mark.parametrize(
    "answer",
    [
        faults.status(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
        faults.status(500, "", "etcdserver: request is too large"),
        faults.status(500, "", "trying to send message larger than max (2097279 vs. 2097152)"),
    ],
)
def test_an_object_that_is_too_large_is_refused_at_once(api: FakeApi, answer: faults.Answer) -> None:
    api.fail(answer, method="PATCH", path="/configmaps/a$")
    with pytest.raises(Refused, match=r"ConfigMap default/a: .*large"):
        Instance(api.url).reconcile([config_map("a")])


@pytest.mark.parametrize("has_webhook", [False, True])
def test_a_denial_may_be_of_a_webhook_that_only_the_former_package_has(api: FakeApi, has_webhook: bool) -> None:
    """It is deleted last, as nobody knows before that the change will stay: the error says what to do."""
    webhook = obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w")
    Instance(api.url).reconcile([config_map("a", a="2"), *([webhook] if has_webhook else [])])
    denied = faults.status(403, "Forbidden", 'admission webhook "w.example.com" denied the request: no')
    api.fail(denied, method="PATCH", path="/configmaps/a$", times=9)
    with pytest.raises(Forbidden) as raised:
        Instance(api.url, yields=True).reconcile([config_map("a", a="1")])
    assert ("delete that and retry" in str(raised.value)) is has_webhook
    assert api.names("ValidatingWebhookConfiguration") == ["w"] * has_webhook


@pytest.mark.parametrize("patience", [0.0, 30.0])
def test_a_crd_whose_objects_finalizers_hold_names_what_to_look_at(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """Also when nothing was written to the CRD for a while: the API server waits as the driver does."""
    monkeypatch.setattr(silence, "PATIENCE", patience)
    Instance(api.url).reconcile([crontab_crd()])
    held = crontab("theirs")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.put(held)
    api.delete("CronTab", "default", "theirs")
    with pytest.raises(NotReady, match=r"finalizers hold some: .*: kubectl get crontabs\.stable\.example\.com -A"):
        Instance(api.url, seconds=3).terminate()
    api.release("CronTab", "default", "theirs")
    Instance(api.url).terminate()
    assert api.names("CustomResourceDefinition") == []


def test_a_finalizer_is_reported_and_not_removed(api: FakeApi) -> None:
    blue = Instance(api.url)
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    blue.reconcile([held, config_map("b")])
    with pytest.raises(NotReady, match=r"ConfigMap default/a: .*held by finalizers example.com/hold") as raised:
        Instance(api.url, seconds=3).terminate()
    assert [report.key.name for report in raised.value.reports] == ["a"]
    assert api.get("ConfigMap", "default", "a")["metadata"]["finalizers"] == ["example.com/hold"]
    api.release("ConfigMap", "default", "a")
    blue.terminate()
    assert state(api) == {}


def test_a_namespace_that_stays_is_reported_with_its_content(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([obj("v1", "Namespace", "stuck")])
    blue.seconds = 2
    left = "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    conditions = [
        controllers.condition("NamespaceFinalizersRemaining", message=left),
        controllers.condition("NamespaceDeletionContentFailure", "False", message="All content successfully deleted"),
    ]
    api.knobs.hold_namespaces.add("stuck")
    api.set_status("Namespace", None, "stuck", {"phase": "Terminating", "conditions": conditions})
    with pytest.raises(NotReady, match=rf"Namespace stuck: Waiting \(Terminating\): {left}; .*kubectl get KIND -n stuck"):
        blue.terminate()


def test_a_namespace_in_the_set_waits_for_the_object_that_a_finalizer_holds(api: FakeApi) -> None:
    held = config_map("a", "blue")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    Instance(api.url).reconcile([obj("v1", "Namespace", "blue"), held])
    with pytest.raises(NotReady) as raised:
        Instance(api.url, seconds=2).terminate()
    first, second = map(str, raised.value.reports)
    assert first.startswith("ConfigMap blue/a: Waiting (Terminating): held by finalizers example.com/hold: their controller")
    assert second.startswith("Namespace blue: Waiting (Blocked): not deleted yet, waits for the deletion of ConfigMap blue/a")


def test_an_object_is_judged_in_the_version_that_its_crd_still_serves(api: FakeApi) -> None:
    """The state of the version that goes has the same resourceVersion."""
    blue, old, one = Instance(api.url), crontab_crd(), {**crontab("one"), "apiVersion": "stable.example.com/v1beta1"}
    [version] = old["spec"]["versions"]
    old["spec"]["versions"] = [{**version, "name": "v1beta1"}]
    blue.reconcile([old, one])
    both = {**old, "spec": {**old["spec"], "versions": [*old["spec"]["versions"], {**version, "storage": False}]}}
    blue.reconcile([both, one])
    api.requests.clear()
    live = blue.reconcile([old, one])
    assert [found["apiVersion"] for key, found in live.items() if key.name == "one"] == [one["apiVersion"]]
    assert len(api.requests.select("PATCH", "/crontabs/one")) == 0


def test_a_change_that_ends_the_version_of_a_kind_follows_it_in_the_next(api: FakeApi) -> None:
    def observe(live: Object) -> None:
        name, generation = live["metadata"]["name"], live["metadata"]["generation"]
        seen = live.get("status", {}).get("observedGeneration")
        if seen != generation and api.find("CronTab", "default", name):
            api.set_status("CronTab", "default", name, status(generation=generation))

    api.react("CronTab", observe)
    old, new = crontab_crd(**CONDITIONS), crontab_crd(**CONDITIONS)
    [first] = new["spec"]["versions"]
    new["spec"]["versions"] = [{**first, "served": False}, {**first, "name": "v2", "storage": False}]
    blue = Instance(api.url)
    blue.reconcile([old, crontab("one"), crontab("two")])
    blue.reconcile([new, {**crontab("one", schedule="0 * * * *"), "apiVersion": "stable.example.com/v2"}])
    assert api.names("CronTab") == ["one"]
    blue.terminate()
    assert state(api) == {}


ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role"}
IMMUTABLE = {
    "StatefulSet": ({**stateful_set("a")}, {**stateful_set("a", serviceName="other")}),
    "RoleBinding": tuple(
        obj("rbac.authorization.k8s.io/v1", "RoleBinding", "a", "default", roleRef={**ROLE, "name": name}, subjects=[])
        for name in ("one", "two")
    ),
    "PriorityClass": tuple(obj("scheduling.k8s.io/v1", "PriorityClass", "a", value=value) for value in (1, 2)),
    "StorageClass": tuple(obj("storage.k8s.io/v1", "StorageClass", "a", provisioner=name) for name in ("x.io", "y.io")),
}


@pytest.mark.parametrize("kind", IMMUTABLE)
def test_the_annotation_replaces_whatever_the_server_calls_immutable(api: FakeApi, kind: str) -> None:
    """The server's words differ: field is immutable, cannot change, may not be changed, updates to ... are forbidden."""
    controllers.run_workloads(api)
    before, after = (copy.deepcopy(one) for one in IMMUTABLE[kind])
    after["metadata"]["annotations"] = {"k8s-cr-driver/replace": "true"}
    blue = Instance(api.url)
    blue.reconcile([before])
    uid = api.objects(kind)[0]["metadata"]["uid"]
    blue.reconcile([after])
    assert api.objects(kind)[0]["metadata"]["uid"] != uid


def touched(api: FakeApi, kind: str, name: str) -> Callable[[Request], bool]:
    """Matches the deletion of that object; somebody else annotates the object before the server executes it."""

    def touch(request: Request) -> bool:
        if request.method == "DELETE":
            api.edit(kind, "default", name, lambda live: live["metadata"]["annotations"].update(seen="yes"))
        return request.method == "DELETE"

    return touch


@pytest.mark.parametrize("prune", [True, False])
def test_the_object_that_is_replaced_is_not_the_desired_one_however_ready(api: FakeApi, prune: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([fixed("1", **REPLACE)])
    api.fail(faults.held(0.3), when=touched(api, "ConfigMap", "a"))
    blue.reconcile([fixed("2", **REPLACE)], prune=prune)
    assert api.get("ConfigMap", "default", "a")["data"] == {"a": "2"}


def test_the_end_of_a_job_that_is_replaced_is_not_that_of_the_new_one(api: FakeApi) -> None:
    done = {"completionTime": "2026-01-01T00:00:00Z", "succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    ran = []

    def finish(live: Object) -> None:
        if not live.get("status"):
            ran.append(live["spec"]["template"]["spec"]["containers"][0]["image"])
            api.set_status("Job", "default", "migrate", done)

    api.react("Job", finish)
    blue = Instance(api.url)
    blue.reconcile([job("migrate", "v:1", **REPLACE)])
    api.fail(faults.held(0.3), when=touched(api, "Job", "migrate"))
    blue.reconcile([job("migrate", "v:2", **REPLACE)])
    assert ran == ["v:1", "v:2"]


def test_a_namespace_that_is_not_there_is_refused_also_for_a_kind_that_the_package_brings(api: FakeApi) -> None:
    elsewhere = {**crontab("one"), "metadata": {"name": "one", "namespace": "missing"}}
    with pytest.raises(Refused, match=r'namespaces "missing" not found. Add the namespace to the package'):
        Instance(api.url).reconcile([crontab_crd(), elsewhere])


UNDECLARED = faults.status(500, "InternalError", ".spec.disableMP: field not declared in schema")


def of_two_versions() -> Object:
    crd = crontab_crd()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False})
    return crd


def in_v2(manifest: Object) -> Object:
    return {**manifest, "apiVersion": "stable.example.com/v2"}


def refuse_applies(api: FakeApi, *, always: bool) -> str:
    """Of the CronTab `one` of now, if fields of it were applied in v1, or `always`. Its uid."""
    uid = str(api.get("CronTab", "default", "one")["metadata"]["uid"])

    def is_refused(request: Request) -> bool:
        live = api.find("CronTab", "default", "one")
        if live is None or live["metadata"]["uid"] != uid or not request.content_type.startswith("application/apply-patch"):
            return False
        versions = {entry["apiVersion"] for entry in live["metadata"]["managedFields"]}
        is_new = request.body["metadata"].get("resourceVersion") == "1"
        return request.path.endswith("/one") and not is_new and (always or "stable.example.com/v1" in versions)

    api.fail(UNDECLARED, method="PATCH", when=is_refused, times=50)
    return uid


@pytest.fixture
def blue(api: FakeApi) -> Instance:
    """An instance with a CronTab in v1, whose CRD has v2, too."""
    api.put(of_two_versions())
    instance = Instance(api.url)
    instance.reconcile([crontab("one")])
    return instance


@pytest.mark.parametrize(
    ("annotations", "is_kept", "refusal"),
    [
        ({}, False, "not declared in schema. Annotate it with k8s-cr-driver/replace"),
        (REPLACE, True, "never deleted"),
        (REPLACE, False, ""),
    ],
)
def test_an_object_that_cannot_be_applied_in_another_version_is_replaced_if_it_may_be(
    api: FakeApi, blue: Instance, annotations: dict[str, str], is_kept: bool, refusal: str
) -> None:
    """A default of the schema of one version is unknown in the other, and the fields' versions alone do not help."""
    if is_kept:
        keep = {KEEP: "true"}
        api.edit("CronTab", "default", "one", lambda live: live["metadata"].setdefault("annotations", {}).update(keep))
    uid = refuse_applies(api, always=True)
    with pytest.raises(Refused, match=refusal) if refusal else contextlib.nullcontext():
        blue.reconcile([annotated(in_v2(crontab("one")), annotations)])
    live = api.get("CronTab", "default", "one")
    assert (live["metadata"]["uid"] == uid) is bool(refusal) and is_managed(live, BLUE)


def test_the_fields_of_an_object_are_moved_to_the_version_in_which_it_is_applied(api: FakeApi, blue: Instance) -> None:
    uid = refuse_applies(api, always=False)
    blue.reconcile([in_v2(crontab("one"))])
    live = api.get("CronTab", "default", "one")
    assert live["metadata"]["uid"] == uid
    assert {entry["apiVersion"] for entry in live["metadata"]["managedFields"]} == {"stable.example.com/v2"}


def test_a_kept_object_is_adopted_in_another_version(api: FakeApi) -> None:
    api.put(of_two_versions())
    blue = Instance(api.url, adopt=True)
    blue.reconcile([kept(crontab("one")), config_map("a")])
    blue.reconcile([config_map("a")])
    uid = refuse_applies(api, always=False)
    blue.reconcile([in_v2(kept(crontab("one"))), config_map("a")])
    assert api.get("CronTab", "default", "one")["metadata"]["uid"] == uid


@pytest.mark.parametrize("is_new", [True, False])
def test_such_an_error_about_no_other_version_passes(api: FakeApi, is_new: bool) -> None:
    blue = Instance(api.url)
    if not is_new:
        blue.reconcile([config_map("one")])
    newer = annotated(config_map("one", a="2"), REPLACE)
    api.fail(UNDECLARED, method="PATCH", path="/configmaps/one", times=2)
    blue.reconcile([newer])
    assert not api.requests.select("DELETE")


def test_a_namespace_that_an_operator_of_the_package_makes_is_waited_for(api: FakeApi) -> None:
    def make_namespace(live: Object) -> None:
        if live["metadata"]["name"] == "tenant" and api.requests.select("PATCH", "/namespaces/tenant/"):
            if api.find("Namespace", None, "tenant") is None:
                api.put(obj("v1", "Namespace", "tenant"))
            if not live.get("status"):
                api.set_status("CronTab", "default", "tenant", status())

    api.react("CronTab", make_namespace)
    run = Instance(api.url).start([crontab_crd(**CONDITIONS), crontab("tenant"), stored_in("tenant")])
    wait_for(api, lambda: bool(api.requests.select("PATCH", "/namespaces/tenant/")))
    api.edit("CronTab", "default", "tenant", lambda live: live["metadata"].setdefault("annotations", {}).update(seen="1"))
    run.result(10)
    assert api.find("CronTab", "tenant", "inner")


def test_a_namespace_is_waited_for_while_its_maker_is_tried_again(api: FakeApi) -> None:
    def make_namespace(live: Object) -> None:
        if live["metadata"]["name"] == "maker" and api.find("Namespace", None, "tenant") is None:
            api.put(obj("v1", "Namespace", "tenant"))
            api.set_status("CronTab", "default", "maker", status())

    api.react("CronTab", make_namespace)
    api.fail(faults.webhook_down(), method="PATCH", path="/crontabs/maker", times=4)
    Instance(api.url).reconcile([crontab_crd(**CONDITIONS), crontab("maker"), stored_in("tenant")])
    assert api.find("CronTab", "tenant", "inner")


def test_a_namespace_is_waited_for_if_its_maker_became_ready_while_the_error_was_on_its_way(api: FakeApi) -> None:
    blue = Instance(api.url)
    tries: list[Request] = []

    def second(request: Request) -> bool:
        tries.append(request)
        if len(tries) != 2:
            return False
        api.set_status("CronTab", "default", "maker", status())
        blue.wait_until_reported("maker", "Ready")
        api.put(obj("v1", "Namespace", "tenant"))
        return True

    missing = faults.Answer(errors.not_found("", "namespaces", "tenant"))
    api.fail(missing, method="PATCH", path="/namespaces/tenant/", when=second)
    blue.reconcile([crontab_crd(**CONDITIONS), crontab("maker"), stored_in("tenant")])
    assert api.find("CronTab", "tenant", "inner") and api.faults_pending == 0


def test_many_objects_in_a_namespace_that_is_not_there_do_not_wait_for_each_other(api: FakeApi) -> None:
    many = [stored_in("missing", f"inner-{number}") for number in range(30)]
    with pytest.raises(Refused, match=r'namespaces "missing" not found. Add the namespace to the package'):
        Instance(api.url).reconcile([crontab_crd(), *many])
    assert len(api.requests.select("PATCH", "/namespaces/missing/")) <= 3 * len(many)


def stored_in(namespace: str, name: str = "inner") -> Object:
    found = crontab(name)
    found["metadata"] = {"name": name, "namespace": namespace, "annotations": {"k8s-cr-driver/ready-when": "stored"}}
    return found


@pytest.mark.parametrize("refusal", ["its manifest", "its creation"])
def test_an_object_is_not_replaced_if_its_newer_version_is_refused(api: FakeApi, blue: Instance, refusal: str) -> None:
    if refusal == "its creation":
        denied = faults.status(403, "Forbidden", 'admission webhook "w" denied the request: no more v2')
        api.fail(denied, method="POST", path="/crontabs", times=9)
        uid = refuse_applies(api, always=True)
    else:
        uid = api.get("CronTab", "default", "one")["metadata"]["uid"]
        typo = "failed to create typed patch object (default/one): .spec.typo: field not declared in schema"
        api.fail(faults.status(500, "InternalError", typo), method="PATCH", path="/crontabs/one", times=50)
    with pytest.raises(Refused):
        blue.reconcile([annotated(in_v2(crontab("one")), REPLACE)])
    assert api.get("CronTab", "default", "one")["metadata"]["uid"] == uid


@pytest.mark.parametrize("always", [False, True])
def test_an_object_that_others_have_written_in_another_version_is_adopted_if_that_helps(api: FakeApi, always: bool) -> None:
    api.put(of_two_versions())
    api.put(crontab("one"), manager="kubectl")
    uid = refuse_applies(api, always=always)
    blue = Instance(api.url, adopt=True)
    if always:
        with pytest.raises(Refused, match="It was adopted, so it is never deleted"):
            blue.reconcile([in_v2(crontab("one"))])
    else:
        blue.reconcile([in_v2(crontab("one"))])
    assert api.get("CronTab", "default", "one")["metadata"]["uid"] == uid


def test_an_object_that_its_watch_has_not_reported_is_called_so_with_the_error_of_the_watch(api: FakeApi) -> None:
    """The conversion webhook of the version that is watched does not respond."""
    api.fail(faults.stream_cut(after=1), path="/v2/crontabs")
    api.fail(faults.internal("conversion webhook for v2 failed: x"), path="/v2/crontabs", times=1000)
    with pytest.raises(NotReady) as raised:
        Instance(api.url, seconds=2).reconcile([of_two_versions(), crontab("one")])
    kind = "CronTab.stable.example.com"
    assert f"{kind} default/one: Waiting (NotReported): applied, but its watch has not reported it yet" in str(raised.value)
    assert f"{kind} *: Waiting (NotListed): the server of stable.example.com/v2 has not listed crontabs" in str(raised.value)
