# SPDX-License-Identifier: Apache-2.0
"""Nothing that is secret is reported: not in errors, not in logs of any library, not in what an object prints of itself."""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from k8s_cr_driver.engine.report import progress_log
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import KEEP
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.context import WriteContext
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, CONDITIONS, Instance, annotated, crontab, crontab_crd, obj, replaced, status
from tests.oidc_provider import OidcProvider

CANARY = "canary-5f1d9c0b7e"
ENCODED = base64.b64encode(CANARY.encode()).decode()
TOKEN = f"token-{CANARY}"
USER = {"username": "operator", "password": f"password-{CANARY}"}
NUMBER = 736251948
SECRETS = (str(NUMBER), CANARY, ENCODED, TOKEN, base64.b64encode(f"operator:password-{CANARY}".encode()).decode())


@pytest.fixture
def reported(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What is reported in a test, to which all log records are added at its end; none of it may be secret."""
    caplog.set_level(logging.DEBUG)
    for name in ("urllib3", "kubernetes", "k8s_cr_driver"):
        caplog.set_level(logging.DEBUG, logger=name)
    texts: list[str] = []
    yield texts
    texts += [f"{record.getMessage()} {record.args} {record.exc_text}" for record in caplog.records]
    assert texts
    for text in texts:
        for secret in SECRETS:
            assert secret not in text, text


def everything(error: BaseException) -> str:
    """An error as a careless caller would log it: with its arguments, its chain and its traceback."""
    return f"{error} {error!r} {error.args} {vars(error)} {''.join(traceback.format_exception(error))}"


def secret(**data: str) -> Object:
    return obj("v1", "Secret", "credentials", "default", data=data or {"password": ENCODED})


FAULTS = {
    "invalid": faults.status(422, "Invalid", "is invalid"),
    "500": faults.internal(),
    "conflict": faults.field_conflict(".data.password"),
    "forbidden": faults.status(403, "Forbidden", "no"),
    "reset": faults.reset_before(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_write_of_a_secret_logs_no_value(api: FakeApi, reported: list[str], fault: str) -> None:
    api.knobs.tokens = {TOKEN}
    blue = Instance(api.url, seconds=0.4, authorization=f"Bearer {TOKEN}")
    api.fail(FAULTS[fault], path="secrets/", times=1000)
    with pytest.raises(DriverError) as raised:
        blue.reconcile([secret()])
    reported.append(everything(raised.value))


def test_a_write_of_a_secret_whose_response_is_cut_logs_no_value(api: FakeApi, reported: list[str]) -> None:
    """The watch reports what it has written."""
    blue = Instance(api.url)
    api.fail(faults.truncated(), method="PATCH", path="secrets/", times=1000)
    blue.reconcile([secret()])
    reported.append(repr(blue.heard))


def test_a_secret_that_is_written_changed_and_deleted(api: FakeApi, reported: list[str]) -> None:
    api.knobs.tokens = {TOKEN}
    blue = Instance(api.url, authorization=f"Bearer {TOKEN}")
    blue.reconcile([secret()])
    blue.reconcile([secret(password=ENCODED, more=ENCODED)])
    blue.terminate()
    reported.append(repr(blue.heard))


def test_a_secret_with_a_number_where_a_string_belongs(api: FakeApi, reported: list[str]) -> None:
    """A real server's answer has the value in it."""
    message = (
        "failed to create typed patch object (default/credentials; /v1, Kind=Secret): .data.password: expected string, "
        f"got &value.valueUnstructured{{Value:{NUMBER}}}"
    )
    api.fail(faults.status(500, "", message), method="PATCH", path="secrets/")
    with pytest.raises(DriverError, match=r"Secret default/credentials: .*\.data\.password: expected string") as raised:
        Instance(api.url).reconcile([secret()])
    reported.append(everything(raised.value))


@pytest.mark.parametrize("access", [{"bearer_token": TOKEN}, USER])
def test_credentials_that_are_refused(api: FakeApi, reported: list[str], access: dict[str, str]) -> None:
    api.knobs.tokens = {"another"}
    endpoint = vim_endpoint({"endpoint": api.url}, access)
    with Connection(endpoint) as connection, pytest.raises(DriverError) as raised:
        connection.request("GET", "/version")
    reported.append(everything(raised.value))
    reported.append(f"{endpoint} {endpoint!r} {connection!r}")


@pytest.mark.parametrize("answer", [
    (400, {"error": CANARY, "error_description": CANARY}), (400, {"error": "invalid_grant", "error_description": CANARY}),
    (500, CANARY.encode()), (200, CANARY.encode()), (200, {"access_token": CANARY}), (200, {"id_token": TOKEN}),
])  # fmt: skip
def test_a_login_that_is_refused_by_a_provider_which_repeats_what_it_was_sent(
    api: FakeApi, reported: list[str], answer: tuple[int, Any]
) -> None:
    api.knobs.tokens = set()
    with OidcProvider(api.knobs.tokens) as provider:
        provider.answers = [answer, answer]
        endpoint = vim_endpoint({"endpoint": api.url}, provider.access(client_secret=CANARY, **USER))
        with Connection(endpoint) as connection, pytest.raises(DriverError) as raised:
            connection.request("GET", "/version")
        reported.append(everything(raised.value))
        reported.append(f"{endpoint} {endpoint!r} {connection!r} {connection._tokens!r}")


def test_what_objects_print_of_themselves(reported: list[str]) -> None:
    endpoint = Endpoint("http://127.0.0.1:1", ca=CANARY, authorization=TOKEN, client_cert=CANARY, client_key=CANARY)
    connection = Connection(endpoint)
    target = WriteContext(Client(connection), Inventory(connection, "default", BLUE))
    reported.append(f"{endpoint!r} {connection!r} {target!r} {resource_for(secret())!r}")


def test_certificates_that_cannot_be_read(reported: list[str]) -> None:
    broken = f"-----BEGIN CERTIFICATE-----\n{ENCODED}\n-----END CERTIFICATE-----\n"
    key = broken.replace("CERTIFICATE", "RSA PRIVATE KEY")
    for pems in ({"ca": broken}, {"client_cert": broken, "client_key": key}):
        with pytest.raises(DriverError, match="certificate or key, cannot be read") as raised:
            Connection(Endpoint("https://127.0.0.1:1", **pems))
        reported.append(everything(raised.value))


def test_an_unready_object_whose_events_hold_a_password(api: FakeApi, reported: list[str]) -> None:
    """Events are the cluster's words; what looks like a credential in them is left out."""
    blue = Instance(api.url)
    run = blue.start([crontab_crd(**CONDITIONS), crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.event(api.get("CronTab", "default", "one"), "Failed", f"login failed: password={CANARY} was refused")
    blue.end()
    error = run.exception(10)
    assert "login failed" in str(error)
    reported.append(str(error))


def test_an_unready_object_whose_status_and_events_quote_what_the_operation_has_sent(
    api: FakeApi, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also values of other objects of the set, which are ready, and in the log lines of the wait."""
    monkeypatch.setattr(progress_log, "FIRST_LINE", 0.05)
    said = f"the vault does not open with {NUMBER} or with {ENCODED}"
    api.react(
        "CronTab",
        lambda live: "status" in live or api.set_status("CronTab", "default", "one", status("False", message=said)),
        "stable.example.com",
    )
    blue = Instance(api.url, seconds=2)
    run = blue.start([crontab_crd(**CONDITIONS), secret(), {**crontab("one"), "spec": {"cronSpec": str(NUMBER)}}])
    blue.wait_until_reported("one", "Waiting")
    api.event(api.get("CronTab", "default", "one"), "Failed", f"no entry {CANARY}{'.' * 300}")
    error = run.exception(10)
    assert "the vault does not open" in str(error) and "no entry" in str(error)
    reported.append(everything(error))


@pytest.mark.parametrize("is_own", [True, False], ids=["its own", "of another object that goes"])
def test_an_event_of_an_object_that_is_not_deleted_names_no_value(api: FakeApi, reported: list[str], is_own: bool) -> None:
    """A terminate has sent none."""
    held = crontab("one", schedule=CANARY) if is_own else crontab("one")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    Instance(api.url).reconcile([crontab_crd(), held, secret()])
    api.event(api.get("CronTab", "default", "one"), "FailedDelete", f"cannot log in with {CANARY}")
    with pytest.raises(NotReady, match="FailedDelete: cannot log in with") as error:
        Instance(api.url, seconds=2).terminate()
    reported.append(everything(error.value))


@pytest.mark.parametrize("field", ["message", "reason"])
def test_the_log_line_of_a_wait_holds_no_credentials(
    api: FakeApi, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    """Nor does the error: a reason is a machine's word, but its author may write what he likes."""
    monkeypatch.setattr(progress_log, "FIRST_LINE", 0.05)
    caplog.set_level("INFO")
    api.put(crontab_crd(**CONDITIONS))
    said = {field: "login with password: hunter2 refused"}
    api.react(
        "CronTab",
        lambda live: "status" in live or api.set_status("CronTab", "default", "one", status("False", **said)),
        "stable.example.com",
    )
    with pytest.raises(NotReady) as error:
        Instance(api.url, seconds=3).reconcile([crontab("one")])
    for text in (caplog.text, str(error.value)):
        assert "refused" in text
        assert "hunter2" not in text


@pytest.mark.parametrize(
    ("method", "annotations", "has_label"),
    [("DELETE", {}, True), ("PATCH", {KEEP: "true"}, True), ("PATCH", {}, False)],
    ids=["deletion", "release", "label"],
)
def test_a_refusal_of_what_sends_no_value_names_none_of_the_object(
    api: FakeApi, reported: list[str], method: str, annotations: dict[str, str], has_label: bool
) -> None:
    """A webhook gets the whole object also with its deletion, and with a patch of its metadata, though none was read."""
    blue = Instance(api.url)
    blue.reconcile([annotated(secret(), annotations)])
    if not has_label:
        replaced(api, "Secret", "default", "credentials")
    is_sent = lambda request: "force" not in request.query  # noqa: E731
    api.fail(faults.denied(f"{ENCODED} is in use"), method=method, path="/secrets/", times=99, when=is_sent)
    blue.seconds = 3
    with pytest.raises(DriverError, match=r"validate.example.com.*\[value removed\] is in use") as refused:
        blue.terminate()
    reported.append(everything(refused.value))


def test_a_refusal_of_a_release_names_no_value_of_the_object(
    api: FakeApi, reported: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The run has read no more of it than its metadata."""
    blue = Instance(api.url, adopt=True)
    api.put(secret())
    blue.reconcile([secret()])
    is_sent = lambda request: "force" in request.query  # noqa: E731
    api.fail(faults.denied(f"{ENCODED} is in use"), method="PATCH", path="/secrets/", times=99, when=is_sent)
    blue.terminate()
    assert "[value removed] is in use" in caplog.text
    reported.append(caplog.text)


def of_value(value: str) -> Object:
    return secret(password=base64.b64encode(value.encode()).decode())


@pytest.mark.parametrize(("status", "words", "value", "meaning"), [
    (422, "data: Forbidden: field is immutable when `immutable` is set", "immutable", "k8s-cr-driver/replace"),
    (500, "failed to create typed patch object: no", "object", "Refused"),
])  # fmt: skip
def test_a_value_hides_no_word_by_which_a_refusal_is_known(
    api: FakeApi, status: int, words: str, value: str, meaning: str
) -> None:
    blue = Instance(api.url)
    blue.reconcile([secret()])
    api.fail(faults.status(status, "", words), method="PATCH", path="/secrets/", times=99)
    with pytest.raises(DriverError) as refused:
        blue.reconcile([of_value(value)])
    assert meaning in f"{type(refused.value).__name__} {refused.value}" and "[value removed]" in str(refused.value)


def test_a_value_hides_no_word_by_which_a_refusal_is_known_to_pass(api: FakeApi) -> None:
    api.fail(faults.status(403, "Forbidden", "its namespace is being terminated"), method="PATCH", path="/secrets/", times=2)
    Instance(api.url).reconcile([of_value("terminated")])
    assert api.get("Secret", "default", "credentials")


def test_a_refused_change_of_a_secret_shows_neither_value(api: FakeApi, reported: list[str]) -> None:
    """A webhook gets the former object, too."""
    blue = Instance(api.url)
    blue.reconcile([obj("v1", "Secret", "s", "default", data={"a": ENCODED})])
    words = f"must not go from {CANARY} to another"
    api.fail(faults.status(400, "BadRequest", words), method="PATCH", path="/secrets/s")
    with pytest.raises(DriverError) as refused:
        blue.reconcile([obj("v1", "Secret", "s", "default", data={"a": base64.b64encode(b"newer").decode()})])
    reported.append(str(refused.value))
    assert "must not go from" in reported[-1]


def test_what_a_namespace_says_of_its_contents_names_no_value_that_was_sent(api: FakeApi, reported: list[str]) -> None:
    """A webhook that refuses to delete them may quote anything."""
    blue = Instance(api.url)
    blue.reconcile([obj("v1", "Namespace", "home"), secret()])
    api.knobs.hold_namespaces.add("home")
    text = f'admission webhook "a.example.com" denied the request: cannot log in with {CANARY}'
    failure = {"type": "NamespaceDeletionContentFailure", "status": "True", "reason": "ContentDeletionFailed", "message": text}

    def held(live: Object) -> None:
        if "deletionTimestamp" in live["metadata"] and not live["status"].get("conditions"):
            api.set_status("Namespace", None, "home", {"phase": "Terminating", "conditions": [failure]})

    api.react("Namespace", held)
    blue.seconds = 3
    error = blue.start([secret()]).exception(10)
    assert "cannot log in with" in str(error)
    reported.append(str(error))


@pytest.mark.parametrize("value", ["canary-7f3kq", "p@ss:w0rd"])
def test_a_value_that_others_have_set_is_not_in_the_error(api: FakeApi, value: str) -> None:
    crd = crontab_crd(**CONDITIONS)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["login"] = {"type": "string"}
    api.put(crd)
    api.put({**crontab("a"), "spec": {"login": value}}, manager="kubectl")
    said = status("False", "Denied", f"cannot log in with {value}", generation=9)
    api.set_status("CronTab", "default", "a", said, manager="controller")
    with pytest.raises(DriverError, match="cannot log in with") as caught:
        Instance(api.url, adopt=True, seconds=2).reconcile([crontab("a")])
    assert value not in str(caught.value)
