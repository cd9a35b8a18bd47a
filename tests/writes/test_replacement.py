# SPDX-License-Identifier: Apache-2.0
"""An object is deleted to be created again only if the API server would create it."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from k8s_cr_driver.engine.apply import recreate
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.nodes import Desired, Phase
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.errors import Conflict, DriverError, Refused
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.resources.registry import resource_for
from tests.fake_api import FakeApi, apply, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import (
    Instance,
    claim,
    config_map,
    created_again,
    crontab,
    crontab_crd,
    job,
    kept,
    labelled,
    obj,
    observed,
    owned,
    run_refused,
    stateful_set,
    wait_for,
)
from tests.times import REAL, change_times
from tests.vnf.test_session import session

REPLACE = {"k8s-cr-driver/replace": "true"}
NEVER_CHANGES = ("FieldValueInvalid", "spec.cronSpec", 'Invalid value: "string": cronSpec is immutable')
OF_TEMPLATE = ("FieldValueInvalid", "spec.template", "Invalid value: {}: field is immutable")


def invalid(*causes: tuple[str, str, str]) -> faults.Answer:
    listed = [{"reason": reason, "field": where, "message": message} for reason, where, message in causes]
    text = ", ".join(f"{where}: {message}" for _, where, message in causes)
    return faults.status(422, "Invalid", f'"one" is invalid: {text}', causes=listed)


def forbidden(words: str, code: int = 403) -> faults.Answer:
    return faults.status(code, "Forbidden", words)


def update_of(api: FakeApi, made: Object) -> Callable[[Request], bool]:
    """An apply that changes the live object of that name."""
    metadata = made["metadata"]
    where = made["kind"], metadata.get("namespace"), metadata["name"]
    uid = api.get(*where)["metadata"]["uid"]

    def is_change(request: Request) -> bool:
        live = api.find(*where)
        is_apply = request.content_type.startswith("application/apply-patch") and request.path.endswith(f"/{where[2]}")
        is_same = live is not None and live["metadata"]["uid"] == uid
        return is_apply and is_same and request.body["metadata"].get("resourceVersion") != "1"

    return is_change


def creation_of(api: FakeApi, made: Object) -> Callable[[Request], bool]:
    """A real creation, or a dry run of one."""
    metadata = made["metadata"]
    where = made["kind"], metadata.get("namespace"), metadata["name"]

    def is_creation(request: Request) -> bool:
        is_apply = request.method == "PATCH" and request.path.endswith(f"/{where[2]}")
        return is_trial(request) or (is_apply and api.find(*where) is None)

    return is_creation


def annotated(made: Object) -> Object:
    changed = copy.deepcopy(made)
    changed["metadata"]["annotations"] = dict(REPLACE)
    return changed


def refuse(api: FakeApi, made: Object, update: faults.Answer, creation: faults.Answer | None = None) -> None:
    api.fail(update, method="PATCH", when=update_of(api, made), times=99)
    if creation:
        api.fail(creation, when=creation_of(api, made), times=99)


def uid_of(api: FakeApi, made: Object) -> str:
    return str(api.get(made["kind"], made["metadata"].get("namespace"), made["metadata"]["name"])["metadata"]["uid"])


def is_trial(request: Request) -> bool:
    return request.method == "POST" and "dryRun" in request.query


CRONTAB, CHANGED = crontab("one"), annotated(crontab("one", schedule="1 * * * *"))
POD = obj("v1", "Pod", "one", "default", spec={"containers": [{"name": "c", "image": "i"}]})
PRIORITY = obj("scheduling.k8s.io/v1", "PriorityClass", "one", value=10)
MODES = "spec.volumeClaimTemplates[0].spec.accessModes"


@pytest.mark.parametrize(
    ("made", "changed", "update", "creation"),
    [
        (
            stateful_set("db"),
            annotated(stateful_set("db")),
            ("FieldValueForbidden", "spec", "Forbidden: updates to statefulset spec for fields other than x are forbidden"),
            ("FieldValueNotSupported", MODES, 'Unsupported value: "ReadWrite": supported values: "ReadOnlyMany"'),
        ),
        (
            PRIORITY,
            annotated({**PRIORITY, "value": 2_000_000_000}),
            ("FieldValueForbidden", "value", "Forbidden: may not be changed in an update."),
            ("FieldValueForbidden", "value", "Forbidden: maximum allowed value of a user defined priority is 1000000000"),
        ),
        (
            CRONTAB,
            CHANGED,
            NEVER_CHANGES,
            ("FieldValueInvalid", "spec.image", "Invalid value: spec.image in body should match '^registry/'"),
        ),
    ],
    ids=["claim templates", "a value", "a fault that was there before"],
)
def test_what_only_a_creation_is_refused_for_keeps_the_object(
    api: FakeApi, made: Object, changed: Object, update: tuple[str, str, str], creation: tuple[str, str, str]
) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    crds = [crontab_crd()] if made["kind"] == "CronTab" else []
    blue.reconcile([*crds, made])
    before = uid_of(api, made)
    refuse(api, made, invalid(update), invalid(creation))
    with pytest.raises(Refused, match="So it is not replaced"):
        blue.reconcile([*crds, changed])
    assert uid_of(api, made) == before


@pytest.mark.parametrize(
    "denial",
    [
        forbidden('admission webhook "w" denied the request: the host is taken by another tenant', 409),
        forbidden('admission webhook "w" denied the request: exceeded quota of licences'),
        forbidden('admission webhook "w" denied the request: tenants cannot patch resource pools'),
    ],
)
def test_a_denial_counts_whatever_its_code_and_its_words(api: FakeApi, denial: faults.Answer) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), CRONTAB])
    before = uid_of(api, CRONTAB)
    refuse(api, CRONTAB, invalid(NEVER_CHANGES), denial)
    with pytest.raises(Refused):
        blue.reconcile([crontab_crd(), CHANGED])
    assert uid_of(api, CRONTAB) == before


def test_the_default_priority_class_is_replaced(api: FakeApi) -> None:
    """The API server has one default at most, so the trial of another one is none."""
    blue, usual = Instance(api.url), {**PRIORITY, "globalDefault": True}
    blue.reconcile([usual])
    refuse(api, usual, invalid(("FieldValueForbidden", "value", "Forbidden: may not be changed in an update.")))
    second = forbidden("PriorityClass one is already marked as default. Only one default can exist")
    api.fail(second, when=lambda one: is_trial(one) and "globalDefault" in one.body, times=99)
    blue.reconcile([annotated({**usual, "value": 20})])
    assert api.get("PriorityClass", None, "one")["value"] == 20


@pytest.mark.parametrize("answer", [faults.webhook_down(), forbidden("failed quota: q: must specify limits.cpu")])
def test_what_may_not_be_replaced_is_refused_without_a_trial(api: FakeApi, answer: faults.Answer) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), CRONTAB])
    refuse(api, CRONTAB, invalid(NEVER_CHANGES))
    api.fail(answer, when=is_trial, times=99)
    with pytest.raises(Refused, match=r"immutable.*Annotate it with k8s-cr-driver/replace"):
        blue.reconcile([crontab_crd(), crontab("one", schedule="1 * * * *")])
    assert not list(filter(is_trial, api.requests.select("POST", "/crontabs")))


def test_an_adopted_object_has_another_remedy(api: FakeApi) -> None:
    api.put(crontab_crd())
    api.put(CRONTAB, manager="kubectl")
    refuse(api, CRONTAB, invalid(NEVER_CHANGES))
    with pytest.raises(Refused, match=r"immutable.*It was adopted, so it is never deleted, nor replaced") as refused:
        Instance(api.url, seconds=5, adopt=True, force=True).reconcile([CHANGED])
    assert "Annotate" not in str(refused.value)
    assert api.find("CronTab", "default", "one")


@pytest.mark.parametrize("code", [400, 403, 406, 410, 422])
def test_a_webhook_may_say_that_a_field_never_changes(api: FakeApi, code: int) -> None:
    """The library controller-runtime responds with 403 to whatever error a webhook of it has."""
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), CRONTAB])
    before = uid_of(api, CRONTAB)
    refuse(api, CRONTAB, faults.denied("spec.cronSpec is immutable", code))
    blue.reconcile([crontab_crd(), CHANGED])
    assert uid_of(api, CRONTAB) != before


def test_a_finished_job_of_the_same_manifest_does_not_run_again(api: FakeApi) -> None:
    """A webhook has changed the image of the Job's template when it was created, so each apply differs from it."""
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([job("one", "i:1")])
    before = uid_of(api, job("one", "i:1"))
    refuse(api, job("one", "i:1"), invalid(OF_TEMPLATE))
    blue.reconcile([job("one", "i:1"), config_map("a")])
    assert uid_of(api, job("one", "i:1")) == before
    blue.reconcile([job("one", "i:2"), config_map("a")])
    assert uid_of(api, job("one", "i:1")) != before


COMPLETE = {
    "succeeded": 1,
    "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T00:00:00Z",
    "conditions": [controllers.condition("SuccessCriteriaMet"), controllers.condition("Complete")],
}


def complete(api: FakeApi, *images: str) -> list[str]:
    """Has the Jobs with these images run to their end; returns the images of those that have."""
    ran: list[str] = []

    def run(live: Object) -> None:
        if image_of(live) in images and not live.get("status"):
            ran.append(image_of(live))
            api.set_status("Job", "default", "one", COMPLETE)

    api.react("Job", run)
    return ran


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_rollback_brings_a_finished_job_back_in_place_of_the_newer_one(api: FakeApi, has_ended: bool) -> None:
    complete(api, "i:1")
    blue = Instance(api.url)
    blue.reconcile([job("one", "i:1")])
    change = blue.start([job("one", "i:2")])
    wait_for(api, lambda: image_of(api.find("Job", "default", "one") or job("one", "")) == "i:2")
    blue.end()
    with pytest.raises(NotReady):
        change.result(10)
    assert image_of(api.get("Job", "default", "one")) == "i:2"
    if has_ended:
        api.set_status("Job", "default", "one", COMPLETE)
    Instance(api.url, yields=True).reconcile([job("one", "i:1")])
    assert image_of(api.get("Job", "default", "one")) == "i:1"


def image_of(live: Object) -> str:
    return str(live["spec"]["template"]["spec"]["containers"][0]["image"])


def test_a_rollback_creates_a_finished_job_that_the_change_has_deleted(api: FakeApi) -> None:
    """The change ends between the deletion of the one and the creation of the other."""
    controllers.run_workloads(api)
    blue, first = Instance(api.url), job("one", "i:1")
    blue.reconcile([first])
    is_creation = creation_of(api, first)
    refusal = invalid(("FieldValueInvalid", "spec", "Invalid value: x"))
    api.fail(refusal, when=lambda one: is_creation(one) and not is_trial(one))
    with pytest.raises(Refused):
        blue.reconcile([job("one", "i:2")])
    assert api.find("Job", "default", "one") is None
    Instance(api.url, yields=True).reconcile([first])
    assert api.find("Job", "default", "one")


def test_a_rollback_brings_back_a_finished_job_that_had_gone_before_the_change(api: FakeApi) -> None:
    """Its time to live was over, so that the newer one was not a replacement."""
    done, blue = complete(api, "i:1"), Instance(api.url)
    blue.reconcile([job("one", "i:1"), config_map("a")])
    api.delete("Job", "default", "one")
    blue.reconcile([job("one", "i:1"), config_map("a", a="2")])
    assert done == ["i:1"]
    change = blue.start([job("one", "i:2"), config_map("a")])
    wait_for(api, lambda: api.find("Job", "default", "one") is not None)
    blue.end()
    with pytest.raises(NotReady):
        change.result(10)
    Instance(api.url, yields=True).reconcile([job("one", "i:1"), config_map("a")])
    assert image_of(api.get("Job", "default", "one")) == "i:1"


def test_nothing_is_deleted_once_another_object_is_refused(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has ended then, so that nothing would be created again."""
    controllers.run_workloads(api)
    blue, first = Instance(api.url), job("one", "i:1")
    blue.reconcile([first, config_map("a")])
    before = uid_of(api, first)
    api.fail(faults.held(end=run_refused(monkeypatch)), when=is_trial)
    api.fail(invalid(("FieldValueInvalid", "data", "Invalid value: wrong")), method="PATCH", path="/configmaps/a")
    with pytest.raises(Refused, match="ConfigMap"):
        blue.reconcile([job("one", "i:2"), config_map("a", a="2")])
    assert uid_of(api, first) == before
    assert not api.requests.select("DELETE", "/jobs/one")


def test_nothing_is_deleted_before_the_other_objects_are_answered(api: FakeApi) -> None:
    """A refusal that comes late finds every object as it was."""
    controllers.run_workloads(api)
    api.put(crontab_crd())
    api.establish("crontabs.stable.example.com")
    blue, first, late = Instance(api.url), job("one", "i:1"), crontab("late")
    blue.reconcile([first, late])
    before = uid_of(api, first)
    api.fail(faults.held(1.5), method="PATCH", path="/crontabs/late")
    late["spec"]["cronSpec"] = 7
    with pytest.raises(Refused, match="CronTab"):
        blue.reconcile([job("one", "i:2"), late])
    assert uid_of(api, first) == before
    assert not api.requests.select("DELETE", "/jobs/one")


def test_an_object_that_waits_for_the_replaced_one_delays_no_deletion(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue, first, later = Instance(api.url), job("one", "i:1"), config_map("a")
    blue.reconcile([first])
    before = uid_of(api, first)
    later["metadata"]["annotations"] = {"config.kubernetes.io/depends-on": "batch/namespaces/default/Job/one"}
    blue.reconcile([job("one", "i:2"), later])
    assert uid_of(api, first) != before
    assert api.find("ConfigMap", "default", "a")


def test_an_object_that_goes_while_the_others_are_not_answered_is_created(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    controllers.run_workloads(api)
    blue, first = Instance(api.url), job("one", "i:1")
    blue.reconcile([first, config_map("a")])
    before, is_held, is_answered, add = uid_of(api, first), threading.Event(), threading.Event(), recreate.Recreator.recreate

    async def held(recreator: recreate.Recreator, node: Desired, live: Object) -> Phase:
        is_held.set()
        return await add(recreator, node, live)

    monkeypatch.setattr(recreate.Recreator, "recreate", held)
    is_gone = observed(monkeypatch, lambda live: live is None)
    api.fail(faults.held(end=is_answered), method="PATCH", path="/configmaps/a")
    run = blue.start([job("one", "i:2"), config_map("a", a="2")])
    assert is_held.wait(10)
    api.delete("Job", "default", "one")
    assert is_gone.wait(10)
    is_answered.set()
    run.result(10)
    assert uid_of(api, first) != before
    assert image_of(api.get("Job", "default", "one")) == "i:2"
    assert not api.requests.select("DELETE", "/jobs/one")


def test_a_job_that_has_lost_the_label_is_replaced(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([job("one", "i:1")])
    before = uid_of(api, job("one", "i:1"))
    api.edit("Job", "default", "one", lambda live: live["metadata"]["labels"].pop(INSTANCE_LABEL))
    refuse(api, job("one", "i:1"), invalid(OF_TEMPLATE))
    blue.reconcile([job("one", "i:2")])
    assert uid_of(api, job("one", "i:1")) != before
    assert INSTANCE_LABEL in labels(api.get("Job", "default", "one"))


def heal(api: FakeApi, made: Object, *others: Object) -> None:
    vdus, recreate = {"vdu": resource_for(made)}, made["kind"] != "Pod"
    with session(api.url) as opened:
        replacement = opened.replacement(vdus, {"vdu": {"one"}}, [*vdus.values()], everything=False, recreate=recreate)
        opened.reconcile([*vdus.values(), *map(resource_for, others)], prune=None, replacement=replacement)


@pytest.mark.parametrize(
    "words",
    [
        'admission webhook "w" denied the request: tenant "blue" not found',
        'crontabs "one" is forbidden: failed quota: q: must specify limits.cpu for: c',
    ],
)
@pytest.mark.parametrize("is_recreated", [False, True])
def test_a_heal_deletes_nothing_for_a_refusal_that_will_not_pass(api: FakeApi, words: str, is_recreated: bool) -> None:
    """Nor what a user has created again meanwhile."""
    Instance(api.url).reconcile([crontab_crd(), CRONTAB])
    if is_recreated:
        created_again(api, "CronTab", "default", "one")
    before = uid_of(api, CRONTAB)
    api.fail(forbidden(words), when=creation_of(api, CRONTAB), times=999)
    with pytest.raises(DriverError, match=r"not found|must specify"):
        heal(api, CRONTAB)
    assert uid_of(api, CRONTAB) == before


EXCEEDED = (
    'crontabs.stable.example.com "one" is forbidden: exceeded quota: q, requested: count/crontabs.stable.example.com=1, '
    "used: count/crontabs.stable.example.com=1, limited: count/crontabs.stable.example.com=1"
)


def test_a_heal_waits_until_the_quota_no_longer_counts_what_it_has_deleted(api: FakeApi) -> None:
    Instance(api.url).reconcile([crontab_crd(), CRONTAB])
    before = uid_of(api, CRONTAB)
    api.fail(forbidden(EXCEEDED), when=is_trial, times=99)
    is_creation = creation_of(api, CRONTAB)
    api.fail(forbidden(EXCEEDED), when=lambda one: is_creation(one) and not is_trial(one), times=2)
    heal(api, CRONTAB)
    assert uid_of(api, CRONTAB) != before


def test_what_else_is_wrong_counts_if_no_trial_is_possible(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), CRONTAB])
    before = uid_of(api, CRONTAB)
    other = ("FieldValueInvalid", "spec.image", "Invalid value: spec.image in body should match '^registry/'")
    no_trial = faults.status(400, "BadRequest", 'admission webhook "m.example.com" does not support dry run')
    api.fail(no_trial, when=is_trial, times=99)
    refuse(api, CRONTAB, invalid(NEVER_CHANGES, other))
    with pytest.raises(Refused, match=r"spec\.image"):
        blue.reconcile([crontab_crd(), CHANGED])
    assert uid_of(api, CRONTAB) == before


def test_an_object_that_a_user_creates_again_during_its_trial_is_not_taken_for_the_new_one(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue, is_tried = Instance(api.url), threading.Event()
    blue.reconcile([crontab_crd(), CRONTAB])
    refuse(api, CRONTAB, invalid(NEVER_CHANGES))
    before = uid_of(api, CRONTAB)
    is_another = observed(monkeypatch, lambda live: live is not None and live["metadata"]["uid"] != before)
    api.fail(faults.held(end=is_another), when=lambda request: is_trial(request) and not is_tried.set())
    run = blue.start([CHANGED])
    assert is_tried.wait(10)
    created_again(api, "CronTab", "default", "one")
    with pytest.raises(Conflict, match="kubectl-replace"):
        run.result(10)


def test_an_error_repeats_no_trial_of_the_objects_before_it(api: FakeApi) -> None:
    many = [config_map(f"c{number}") for number in range(40)]
    Instance(api.url).reconcile([crontab_crd(), CRONTAB, *many])
    numbers = itertools.count(1)
    api.requests.clear()
    busy = faults.status(429, "TooManyRequests", "busy", retry_after=0)
    api.fail(busy, when=lambda one: one.method == "PATCH" and "dryRun" in one.query and not next(numbers) % 20, times=99)
    heal(api, CRONTAB, *many)
    tried = [one for one in api.requests if one.method == "PATCH" and "dryRun" in one.query]
    assert len(tried) <= len(many) + 4


def test_a_heal_does_not_try_the_creation_of_a_finished_job(api: FakeApi) -> None:
    """A webhook has changed the Job when it was created, and a policy accepts no such Jobs any more."""
    controllers.run_workloads(api)
    Instance(api.url).reconcile([crontab_crd(), CRONTAB, job("one", "i:1")])
    before = uid_of(api, CRONTAB)
    denied = forbidden('admission webhook "w" denied the request: no Jobs')
    refuse(api, job("one", "i:1"), invalid(OF_TEMPLATE))
    api.fail(denied, when=is_trial, path="/jobs", times=99)
    heal(api, CRONTAB, job("one", "i:1"))
    assert uid_of(api, CRONTAB) != before


def test_a_heal_is_the_remedy_for_a_field_that_never_changes(api: FakeApi) -> None:
    """A webhook may have changed it; `recreate` deletes the object in any case."""
    Instance(api.url).reconcile([crontab_crd(), CRONTAB])
    before = uid_of(api, CRONTAB)
    refuse(api, CRONTAB, invalid(NEVER_CHANGES))
    heal(api, CRONTAB)
    assert uid_of(api, CRONTAB) != before


@pytest.mark.parametrize(
    "words",
    [
        "status unknown for quota: q",
        'error looking up service account x: "x" not found',
        "no PriorityClass with name high was found",
    ],
)
def test_a_heal_does_not_wait_for_what_will_soon_be_otherwise(api: FakeApi, words: str) -> None:
    controllers.run_workloads(api)
    pod = labelled(POD, app="one")
    Instance(api.url).reconcile([pod])
    before = uid_of(api, pod)
    api.fail(forbidden(f'pods "one" is forbidden: {words}'), when=is_trial)
    heal(api, pod)
    assert uid_of(api, pod) != before


@pytest.fixture
def request_crd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Object]:
    """A kind whose API server restores the former spec, and says 200."""
    real = apply.apply

    def restoring(live: Object, config: Object, *rest: object) -> Object:
        if "request" in config.get("spec", {}):
            config = {**config, "spec": {**config["spec"], "request": config["spec"]["request"].replace("\n", "")}}
        merged = real(live, config, *rest)
        return {**merged, "spec": live["spec"]} if config["kind"] == "CertificateSigningRequest" and "spec" in live else merged

    monkeypatch.setattr(apply, "apply", restoring)
    crd = crontab_crd()
    plural, kind = "certificatesigningrequests", "CertificateSigningRequest"
    crd["metadata"]["name"] = f"{plural}.certificates.k8s.io"
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    crd["spec"] |= {"group": "certificates.k8s.io", "scope": "Cluster", "names": names}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd["spec"]["versions"] = [
        {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": free}}
    ]
    yield crd


@pytest.mark.parametrize("annotations", [{}, REPLACE])
def test_a_change_that_the_server_ignores_is_none(api: FakeApi, request_crd: Object, annotations: dict[str, str]) -> None:
    def signing(request: str, **metadata: object) -> Object:
        spec = {"request": request, "signerName": "example.com/s", "usages": ["client auth"]}
        made = obj("certificates.k8s.io/v1", "CertificateSigningRequest", "web", spec=spec)
        made["metadata"] |= metadata
        return made

    def sign(live: Object) -> None:
        condition = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
        if not live.get("status"):
            status = {"certificate": "Zm9ybWVy", "conditions": [condition]}
            api.set_status("CertificateSigningRequest", None, "web", status)

    api.put(request_crd)
    api.react("CertificateSigningRequest", sign)
    blue = Instance(api.url)
    blue.reconcile([signing("Zmlyc3Q=")])
    newer = signing("c2Vjb25k", annotations=annotations)
    blue.reconcile([signing("Zmly\nc3Q=\n"), config_map("a")])  # line ends, as of a block in YAML, are no change
    if annotations:
        blue.reconcile([newer])
        assert api.get("CertificateSigningRequest", None, "web")["spec"]["request"] == "c2Vjb25k"
    else:
        with pytest.raises(Refused, match=r"the API server leaves spec.request as it was"):
            blue.reconcile([newer])


def with_image() -> Object:
    crd = crontab_crd()
    [version] = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["image"] = {"type": "string"}
    return crd


@pytest.mark.parametrize(
    "refusal",
    [
        faults.status(400, "BadRequest", "failed to create typed patch object: .spec.image: field not declared in schema"),
        faults.status(500, "InternalError", "failed to create typed patch object: .spec.image: field not declared in schema"),
        faults.status(422, "Invalid", '"one" is invalid: spec.cronSpec: Unsupported value: "x": supported values: "a"'),
        invalid(NEVER_CHANGES),
    ],
)
@pytest.mark.parametrize("annotations", [{}, REPLACE])
def test_an_api_server_with_the_former_crd_is_asked_again(
    api: FakeApi, refusal: faults.Answer, annotations: dict[str, str]
) -> None:
    """Each API server learns of a change of a CRD from its own watch."""
    blue, one = Instance(api.url), crontab("one", schedule="1 * * * *")
    blue.reconcile([crontab_crd(), CRONTAB])
    before = uid_of(api, CRONTAB)
    one["spec"]["image"], one["metadata"]["annotations"] = "i", annotations
    api.fail(refusal, method="PATCH", path="/crontabs/one")
    blue.reconcile([with_image(), one])
    assert api.get("CronTab", "default", "one")["spec"]["image"] == "i"
    assert uid_of(api, CRONTAB) == before


def test_a_kept_object_with_a_new_field_of_its_changed_crd_is_applied(api: FakeApi) -> None:
    def change(crd: Object, **spec: str) -> None:
        one = kept(crontab("one"))
        one["spec"] |= spec
        with session(api.url) as opened:
            opened.reconcile(opened.place([crd, one]), prune=Prune())

    change(crontab_crd())
    change(with_image(), image="i")
    assert api.get("CronTab", "default", "one")["spec"]["image"] == "i"


def test_a_wrong_object_is_refused_at_once_if_its_crd_has_not_changed(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), CRONTAB])
    refusal = faults.status(422, "Invalid", '"one" is invalid: spec.cronSpec: Unsupported value: "x": supported values: "a"')
    api.fail(refusal, method="PATCH", path="/crontabs/one", times=99)
    began = time.monotonic()
    with pytest.raises(Refused, match="Unsupported value"):
        blue.reconcile([crontab_crd(), crontab("one", schedule="x")])
    assert time.monotonic() - began < 9


def test_a_stateful_set_whose_claims_go_with_it_is_not_replaced(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)

    def made(policy: str, service: str) -> Object:
        retention = {"whenDeleted": policy, "whenScaled": "Retain"}
        return annotated(stateful_set("db", persistentVolumeClaimRetentionPolicy=retention, serviceName=service))

    blue.reconcile([made("Delete", "one")])
    before, claim = uid_of(api, made("Delete", "one")), api.get("PersistentVolumeClaim", "default", "data-db-0")
    with pytest.raises(Refused, match=r"StatefulSet\.apps default/db: .*whenDeleted is Delete\. Set that to Retain first"):
        blue.reconcile([made("Delete", "two")])
    assert uid_of(api, made("Delete", "two")) == before
    blue.reconcile([made("Retain", "one")])
    blue.reconcile([made("Delete", "two")])
    assert uid_of(api, made("Delete", "two")) != before
    assert api.get("PersistentVolumeClaim", "default", "data-db-0")["metadata"]["uid"] == claim["metadata"]["uid"]


@pytest.mark.parametrize("fault", [faults.reset_before(), faults.unavailable(), faults.too_many(0), faults.conflict("a")])
def test_an_error_that_passes_is_no_answer(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, fault: faults.Action
) -> None:
    controllers.run_workloads(api)
    blue, first = Instance(api.url), job("one", "i:1")
    change_times(monkeypatch, hold=REAL.hold)
    blue.reconcile([first, config_map("a")])
    api.fail(fault, method="PATCH", path="/configmaps/a", times=3)
    api.fail(invalid(("FieldValueInvalid", "data", "Invalid value: wrong")), method="PATCH", path="/configmaps/a")
    with pytest.raises(Refused, match="ConfigMap"):
        blue.reconcile([job("one", "i:2"), config_map("a", a="2")])
    assert not api.requests.select("DELETE", "/jobs/one")


def test_a_denied_deletion_is_reported_and_forgets_no_end(api: FakeApi) -> None:
    ran, blue, first = complete(api, "i:1", "i:2"), Instance(api.url), job("one", "i:1")
    blue.reconcile([first, config_map("a")])
    blue.seconds = 3
    api.fail(forbidden('admission webhook "guard" denied the request: a freeze'), method="DELETE", path="/jobs/one", times=99)
    with pytest.raises(NotReady, match=r"Job\.batch default/one: .*a freeze"):
        blue.reconcile([job("one", "i:2"), config_map("a")])
    api.delete("Job", "default", "one")
    Instance(api.url, yields=True).reconcile([first, config_map("a")])
    assert ran == ["i:1"]


def test_the_trial_of_a_copy_has_no_debug_containers(api: FakeApi) -> None:
    controllers.run_workloads(api)
    pod = POD
    Instance(api.url).reconcile([pod])
    before, live = uid_of(api, pod), api.get("Pod", "default", "one")
    live["spec"]["ephemeralContainers"] = [{"name": "debugger", "image": "busybox"}]
    with api.cluster.writing():
        api.cluster.store.put(api.cluster.by_kind("Pod").resource, live)
    of_create = invalid(("FieldValueForbidden", "spec.ephemeralContainers", "Forbidden: cannot be set on create"))
    api.fail(of_create, when=lambda request: is_trial(request) and "ephemeralContainers" in request.body["spec"], times=99)
    full = forbidden('pods "one" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1')
    api.fail(full, when=is_trial, times=99)
    heal(api, pod)
    assert uid_of(api, pod) != before


def test_a_heal_of_all_replaces_a_failed_pod_that_is_no_vdu(api: FakeApi) -> None:
    controllers.run_workloads(api)
    tab, pod = crontab("tab"), POD
    api.put(crontab_crd())
    Instance(api.url).reconcile([tab, pod])
    api.set_status("Pod", "default", "one", {"phase": "Failed", "reason": "Evicted"})
    before, vdus = uid_of(api, pod), {"vdu": resource_for(tab)}
    with session(api.url) as opened:
        wanted = [*vdus.values(), resource_for(pod)]
        chosen = opened.replacement(vdus, {"vdu": {"tab"}}, wanted, everything=True, recreate=False)
        opened.reconcile(wanted, prune=None, replacement=chosen)
    assert uid_of(api, pod) != before


@pytest.mark.parametrize("made", [job("one", "i:1"), {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}])
def test_a_chosen_object_that_has_ended_and_vanished_runs_again(api: FakeApi, made: Object) -> None:
    controllers.run_workloads(api)
    Instance(api.url).reconcile([made])
    if made["kind"] == "Pod":
        api.set_status("Pod", "default", "one", {"phase": "Succeeded"})
        Instance(api.url).reconcile([made])
    api.delete(made["kind"], "default", "one")
    heal(api, made)
    assert api.find(made["kind"], "default", "one")


def test_the_error_of_a_field_that_never_changes_names_it(api: FakeApi) -> None:
    controllers.run_workloads(api)
    Instance(api.url).reconcile([stateful_set("db", serviceName="one")])
    words = "Forbidden: updates to statefulset spec for fields other than 'replicas' and 'template' are forbidden"
    refuse(api, stateful_set("db"), invalid(("FieldValueForbidden", "spec", words)))
    with pytest.raises(Refused, match=r"StatefulSet\.apps default/db: spec\.serviceName: .*updates to statefulset spec"):
        Instance(api.url).reconcile([stateful_set("db", serviceName="two")])


EXPRESSIONS = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]}


@pytest.mark.parametrize("selector", [{"matchLabels": {"app": "db"}}, EXPRESSIONS], ids=["labels", "expressions"])
def test_claims_that_still_have_a_replaced_stateful_set_as_owner_stay(api: FakeApi, selector: Object) -> None:
    """The controller does not look at claims of ordinals without a Pod: those have the reference also after a Retain."""
    controllers.run_workloads(api)

    def made(service: str) -> Object:
        retention = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        one = stateful_set("db", persistentVolumeClaimRetentionPolicy=retention, serviceName=service, selector=selector)
        return annotated(one)

    Instance(api.url).reconcile([made("one")])
    former = uid_of(api, made("one"))
    api.put(claim("data-db-1", app="db"), manager=controllers.MANAGER)
    before = {name: owned(api, name, "StatefulSet", "apps/v1", "db") for name in ("data-db-0", "data-db-1")}
    Instance(api.url).reconcile([made("two")])
    assert uid_of(api, made("two")) != former
    assert before == {name: uid_of_claim(api, name) for name in before}


def test_a_deletion_that_hangs_is_not_explained_by_a_former_error(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([job("one", "i:1")])
    api.edit("Job", "default", "one", lambda live: live["metadata"].update(finalizers=["example.com/wait"]))
    api.fail(faults.unavailable(), method="PATCH", path="/jobs/one")
    blue.seconds = 3
    with pytest.raises(NotReady, match=r"Job\.batch default/one: .*held by finalizers example\.com/wait"):
        blue.reconcile([job("one", "i:2")])


def uid_of_claim(api: FakeApi, name: str) -> str:
    found = api.get("PersistentVolumeClaim", "default", name)["metadata"]
    assert "deletionTimestamp" not in found
    return str(found["uid"])


@pytest.mark.parametrize("is_desired", [True, False])
def test_a_claim_whose_kind_is_listed_late_outlives_the_owner_that_is_replaced(api: FakeApi, is_desired: bool) -> None:
    controllers.run_workloads(api)
    blue, volume = Instance(api.url), claim("volume")
    volume["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/first"}
    volume = volume if is_desired else kept(volume)
    blue.reconcile([config_map("first"), job("one", "i:1"), volume])
    before, former = owned(api, "volume", "Job", "batch/v1", "one"), api.get("Job", "default", "one")["metadata"]["uid"]
    api.fail(faults.unavailable(), method="GET", path="/persistentvolumeclaims", times=4)
    blue.reconcile([config_map("first"), job("one", "i:2"), *([volume] if is_desired else [])])
    assert api.get("Job", "default", "one")["metadata"]["uid"] != former
    assert uid_of_claim(api, "volume") == before


DENIAL = 'admission webhook "a.example.com" denied the request: approval ticket not found'


def test_a_denial_that_passes_soon_replaces_nothing_meanwhile(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    controllers.run_workloads(api)
    blue = Instance(api.url, seconds=20)
    change_times(monkeypatch, hold=0.2)
    blue.reconcile([job("one", "i:1"), config_map("z")])
    before = api.get("Job", "default", "one")
    api.fail(faults.status(403, "Forbidden", DENIAL), method="PATCH", path="/configmaps/z", times=3)
    api.fail(faults.status(403, "Forbidden", "no"), method="PATCH", path="/configmaps/z")
    with pytest.raises(DriverError, match=r"no$"):
        blue.reconcile([job("one", "i:2"), config_map("z", b="2")])
    assert api.get("Job", "default", "one") == before


def test_a_denial_may_pass_when_another_object_is_replaced(api: FakeApi) -> None:
    """The webhook may be served by it."""
    controllers.run_workloads(api)
    blue = Instance(api.url, seconds=16)  # half of it for the denial, of whose tries one is after ten seconds
    blue.reconcile([job("one", "i:1"), config_map("z")])
    before = api.get("Job", "default", "one")["metadata"]["uid"]

    def is_former(request: Request) -> bool:
        live = api.find("Job", "default", "one")
        is_changed = request.method == "PATCH" and request.path.endswith("/configmaps/z")
        return is_changed and live is not None and live["metadata"]["uid"] == before

    api.fail(faults.status(403, "Forbidden", DENIAL), when=is_former, times=10_000)
    blue.reconcile([job("one", "i:2"), config_map("z", b="2")])


def test_a_refusal_names_no_field_that_only_the_server_sets(api: FakeApi) -> None:
    controllers.run_workloads(api)
    Instance(api.url).reconcile([kept(job("one", "i:1"))])
    with pytest.raises(Refused, match=r"spec\.template") as caught:
        Instance(api.url).reconcile([kept(job("one", "i:2"))])
    assert "spec.selector" not in str(caught.value)
