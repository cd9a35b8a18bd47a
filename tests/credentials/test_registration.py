# SPDX-License-Identifier: Apache-2.0
"""A received cluster becomes a VIM of Tacker, stays current, and is removed; whatever fails on the way."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.credentials import registration, service_account, tacker
from k8s_cr_driver.credentials import store as store_module
from k8s_cr_driver.credentials.registration import Registrar
from k8s_cr_driver.credentials.store import Store, Stored
from k8s_cr_driver.credentials.tacker import Tacker, Vim
from k8s_cr_driver.errors import ConnectionFailed, DriverError, InvalidRequest
from k8s_cr_driver.kube import threads
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from tests.credentials.clusters import TOKEN
from tests.credentials.messages import gone, issue, ready
from tests.credentials.openstack import PASSWORD, Cloud, openstack
from tests.credentials.web import wait_until
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE

OWN_TOKEN = "token-of-tacker-vim"
NAME = f"red_default_{BLUE}"
LOCAL = EndpointRules(("127.0.0.0/8",))


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with openstack() as one:
        yield one


@pytest.fixture
def workload(tls_api: FakeApi) -> FakeApi:
    """A workload cluster with a token controller."""
    issue(tls_api, OWN_TOKEN)
    return tls_api


@pytest.fixture
def log() -> list[str]:
    """Of the `registrar`."""
    return []


@pytest.fixture
def registrar(tmp_path: Path, cloud: Cloud, log: list[str]) -> Registrar:
    return Registrar(Store(tmp_path / "received"), Tacker(cloud.entry), log.append, LOCAL)


def retry_now(registrar: Registrar) -> None:
    """As after the pause that follows a failure."""
    for stored in registrar.store.clusters():
        registrar.changed(stored)
    registrar.reconcile()


def test_a_cluster_becomes_a_vim_with_a_token_of_its_own_and_goes_with_it(
    registrar: Registrar, workload: FakeApi, cloud: Cloud
) -> None:
    registrar.store.accept(message := ready(workload))
    registrar.reconcile()
    [vim] = cloud.vims.values()
    assert (vim["name"], vim["type"], vim["auth_url"]) == (NAME, "kubernetes", workload.url)
    assert vim["auth_cred"]["bearer_token"] == OWN_TOKEN and "BEGIN CERTIFICATE" in vim["auth_cred"]["ssl_ca_cert"]
    registrar.store.accept(replace(gone(message), event="going"))
    registrar.reconcile()
    assert len(cloud.vims) == 1
    registrar.store.accept(gone(message))
    registrar.reconcile()
    assert cloud.vims == {} and registrar.store.clusters()[0].vim == ""


def test_the_service_account_has_the_documented_role_and_no_more(workload: FakeApi) -> None:
    with Connection(Endpoint(workload.url, ca=workload.ca_cert or "")) as connection:
        assert service_account.token(connection) == OWN_TOKEN
        assert service_account.token(connection) == OWN_TOKEN
    assert workload.names("ServiceAccount", "tacker-vim") == ["tacker-vim"]
    [rule] = workload.get("ClusterRole", None, "tacker-vim")["rules"]
    assert not {"bind", "escalate", "impersonate", "*"} & set(rule["verbs"])
    [subject] = workload.get("ClusterRoleBinding", None, "tacker-vim")["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "tacker-vim", "namespace": "tacker-vim"}


def test_a_cluster_without_a_token_controller_is_reported(tls_api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_account, "TOKEN_WITHIN", 0.1)
    message = "Secret tacker-vim/tacker-vim gets no token"
    endpoint = Endpoint(tls_api.url, ca=tls_api.ca_cert or "")
    with Connection(endpoint) as connection, pytest.raises(ConnectionFailed, match=message):
        service_account.token(connection)


def test_a_new_token_and_a_new_endpoint_reach_the_vim(registrar: Registrar, workload: FakeApi, cloud: Cloud) -> None:
    registrar.store.accept(ready(workload))
    registrar.reconcile()
    [before] = cloud.vims
    workload.delete("Secret", "tacker-vim", "tacker-vim")
    issue(workload, "newer-token")
    registrar.store.accept(ready(workload, "another-admin", seconds=1))
    registrar.reconcile()
    assert cloud.vims[before]["auth_cred"]["bearer_token"] != OWN_TOKEN
    with FakeApi(tls=True) as moved:
        issue(moved, OWN_TOKEN)
        registrar.store.confirm(registrar.store.accept(ready(moved, seconds=2)))
        registrar.reconcile()
        [vim] = cloud.vims.values()
        assert vim["auth_url"] == moved.url and vim["id"] != before


def test_what_is_current_is_not_asked_for_again(registrar: Registrar, workload: FakeApi, cloud: Cloud, tmp_path: Path) -> None:
    registrar.store.accept(ready(workload))
    registrar.reconcile()
    cloud.requests.clear()
    registrar.reconcile()
    Registrar(Store(tmp_path / "received"), Tacker(cloud.entry), [].append, LOCAL).reconcile()
    assert cloud.requests == []


def test_a_restart_goes_on_with_what_has_failed(registrar: Registrar, workload: FakeApi, cloud: Cloud, tmp_path: Path) -> None:
    cloud.failures.append(503)
    registrar.store.accept(message := ready(workload))
    registrar.reconcile()
    assert cloud.vims == {}
    registrar.reconcile()
    assert len(cloud.requests) == 1, "not before the pause is over"
    again = Registrar(Store(tmp_path / "received"), Tacker(cloud.entry), [].append, LOCAL)
    again.reconcile()
    assert len(cloud.vims) == 1
    again.store.accept(gone(message))
    Registrar(Store(tmp_path / "received"), Tacker(cloud.entry), [].append, LOCAL).reconcile()
    assert cloud.vims == {}


def test_a_cluster_that_goes_before_it_was_registered_is_forgotten(registrar: Registrar, workload: FakeApi) -> None:
    """While something is to be tried again, the registrar looks every second."""
    workload.fail(faults.internal(), times=100)
    registrar.store.accept(message := ready(workload))
    registrar.reconcile()
    assert registrar._failures and registrar._not_before
    registrar.store.accept(gone(message))
    registrar.reconcile()
    assert not registrar._failures and not registrar._not_before


def test_a_registration_whose_response_was_lost_leaves_no_vim_behind(
    registrar: Registrar, workload: FakeApi, cloud: Cloud
) -> None:
    def lose(method: str) -> None:
        answer = cloud.answer

        def losing(*request: Any) -> tuple[int, Any]:
            cloud.lost = request[0] == method and "vims" in request[1]
            return answer(*request)

        cloud.answer = losing  # type: ignore[method-assign]

    lose("POST")
    registrar.store.accept(message := ready(workload))
    registrar.reconcile()
    assert len(cloud.vims) == 1 and not registrar.store.clusters()[0].is_registered
    registrar.store.accept(gone(message))
    retry_now(registrar)
    assert cloud.vims == {}


def test_a_cluster_that_fails_does_not_hold_up_another(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeApi(tls=True) as down:
        message = replace(ready(down), cluster="default/blue")
    registrar.store.accept(message)
    registrar.store.accept(ready(workload))
    registrar.start()
    registrar.changed(registrar.store.clusters()[0])
    wait_until(lambda: [vim["name"] for vim in cloud.vims.values()] == [NAME])


def test_no_secret_is_in_the_log(registrar: Registrar, workload: FakeApi, cloud: Cloud, log: list[str]) -> None:
    registrar.store.accept(ready(workload))
    workload.fail(faults.status(403, "Forbidden"))
    registrar.reconcile()
    cloud.failures.append(400)
    retry_now(registrar)
    retry_now(registrar)
    assert len(log) == 3 and "status 400" in log[1]
    for secret in (TOKEN, OWN_TOKEN, PASSWORD):
        assert secret not in str(log)


def test_credentials_that_are_incomplete_are_an_error() -> None:
    with pytest.raises(InvalidRequest, match=r"The entry of clouds\.yaml: .*auth_url"):
        Tacker({"auth": {"username": "operator"}})
    with pytest.raises(InvalidRequest, match=r"The entry of clouds\.yaml: .*soap"):
        Tacker({"auth_type": "soap", "auth": {"a": "b"}})
    with pytest.raises(InvalidRequest, match=r"The entry of clouds\.yaml: auth has no setting pasword$"):
        Tacker({"auth": {"auth_url": "http://a", "username": "operator", "pasword": PASSWORD}})


@pytest.mark.parametrize("verify", ["false", "", 0, None])
def test_a_verification_of_tackers_certificate_that_is_no_boolean_is_an_error(tmp_path: Path, verify: Any) -> None:
    """An empty text would switch it off."""
    (path := tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"a": {"auth": {"b": "c"}, "verify": verify}}}))
    with pytest.raises(InvalidRequest, match="verify of cloud 'a' must be true or false, without quotes"):
        tacker.cloud(path, "a")


def test_two_clusters_of_an_instance_have_two_vims(registrar: Registrar, workload: FakeApi, cloud: Cloud) -> None:
    """Names have hyphens, so that `red-eu` in `west` and `red` in `eu-west` would be one if these joined them."""
    with FakeApi(tls=True) as other:
        issue(other, "token-two")
        one, two = replace(ready(workload), cluster="west/red-eu"), replace(ready(other), cluster="eu-west/red")
        for message in (one, two):
            registrar.store.accept(message)
        registrar.reconcile()
        assert len(cloud.vims) == 2
        registrar.store.accept(gone(one))
        registrar.reconcile()
        assert [vim["auth_url"] for vim in cloud.vims.values()] == [other.url]


def test_the_registrar_outlives_an_error_of_the_disk(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = registrar.store.accept(ready(workload))
    clusters, failures = registrar.store.clusters, [OSError(24, "Too many open files")]

    def failing() -> list[Stored]:
        if failures:
            raise failures.pop()
        return clusters()

    monkeypatch.setattr(registrar.store, "clusters", failing)
    registrar.start()
    wait_until(lambda: not failures)
    registrar.changed(message)
    wait_until(lambda: cloud.vims)


def test_clusters_for_which_there_is_no_thread_are_registered_later(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    for cluster in ("default/red", "default/blue"):
        message = registrar.store.accept(replace(ready(workload), cluster=cluster))

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threads, "start", refuse)
        registrar.start()
        wait_until(lambda: log)
    registrar.changed(message)
    wait_until(lambda: len(cloud.vims) == 2)
    assert [line for line in log if "no thread can be started" in line] == log[:1]


def test_a_file_of_somebody_else_in_the_folder_holds_up_nobody(registrar: Registrar, tls_api: FakeApi) -> None:
    store = registrar.store
    for name, text in (("notes", "{}"), ("list", "[]"), ("text", "no JSON")):
        (store.folder / f"{name}.json").write_text(text)
    assert store.clusters() == []
    message = store.accept(ready(tls_api))
    assert store.clusters() == [message]


def test_a_silent_cluster_holds_up_no_other(registrar: Registrar, workload: FakeApi, cloud: Cloud) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        text = ready(workload).kubeconfig.replace(workload.url, url)
        registrar.store.accept(replace(ready(workload), cluster="default/a", kubeconfig=text, endpoint=url))
        registrar.start()
        with silent.accept()[0]:
            registrar.changed(registrar.store.accept(ready(workload)))
            wait_until(lambda: cloud.vims)
            registrar.changed(registrar.store.accept(gone(ready(workload))))
            wait_until(lambda: not cloud.vims)


def test_no_token_is_requested_of_a_server_without_tls(
    registrar: Registrar, api: FakeApi, cloud: Cloud, log: list[str]
) -> None:
    issue(api, OWN_TOKEN)
    api.ca_cert = ""
    registrar.store.accept(ready(api))
    registrar.reconcile()
    assert not cloud.vims and "has an http server" in log[0]
    assert len(api.requests) == 0


@pytest.mark.parametrize("url", ["https://mine.example.com", ""])
def test_a_vim_of_somebody_else_is_left_alone(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, url: str, log: list[str]
) -> None:
    mine = {"id": "1", "name": NAME, "description": "mine", "auth_url": url or workload.url, "auth_cred": {}}
    cloud.vims["1"] = dict(mine)
    registrar.store.accept(message := ready(workload))
    registrar.reconcile()
    assert f"Tacker has a VIM {NAME} that somebody else has registered" in log[0]
    registrar.store.accept(gone(message))
    retry_now(registrar)
    assert cloud.vims == {"1": mine} and registrar.store.clusters()[0].vim == ""


def test_a_vim_that_somebody_has_described_anew_is_left_and_named(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, log: list[str]
) -> None:
    registrar.store.accept(message := ready(workload))
    registrar.reconcile()
    [vim] = cloud.vims.values()
    vim["description"] = "mine"
    registrar.store.accept(gone(message))
    registrar.reconcile()
    assert cloud.vims and f"VIM {NAME} has another description by now, so it is left" in log[-1]


def test_nothing_that_a_workload_cluster_says_is_logged(registrar: Registrar, workload: FakeApi, log: list[str]) -> None:
    """It has the admin's token, and could repeat it in any form."""
    workload.fail(faults.status(403, "Forbidden", f"you have sent {TOKEN[::-1]}"))
    registrar.store.accept(ready(workload))
    registrar.reconcile()
    assert "403 Forbidden: what the server says is not shown" in log[0] and TOKEN[::-1] not in log[0]


def test_a_cluster_that_was_forgotten_during_its_registration_gets_no_vim(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "KEPT", 0.0)
    registrar.store.accept(message := ready(workload))
    whole = registrar._vim

    def slow(stored: Stored) -> Vim:
        vim = whole(stored)
        registrar.store.accept(gone(message))
        registrar.store.accept(replace(gone(message), cluster="default/other"))
        return vim

    monkeypatch.setattr(registrar, "_vim", slow)
    registrar.reconcile()
    assert not cloud.vims


def test_a_message_that_comes_while_a_try_fails_is_not_held_up(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    registrar.store.accept(ready(workload))
    whole = registrar._vim

    def failing(_: Stored) -> Vim:
        registrar.changed(registrar.store.accept(ready(workload)))
        raise DriverError("no")

    monkeypatch.setattr(registrar, "_vim", failing)
    registrar.reconcile()
    monkeypatch.setattr(registrar, "_vim", whole)
    registrar.reconcile()
    assert len(cloud.vims) == 1


def test_it_connects_only_where_its_rules_permit(registrar: Registrar, workload: FakeApi, cloud: Cloud, log: list[str]) -> None:
    """The sender decides what stands in a kubeconfig, and this host may be trusted where it leads."""
    registrar.judge = EndpointRules(option="--allow-endpoint")
    registrar.store.accept(ready(workload))
    registrar.reconcile()
    assert "127.0.0.1: resolves to an address to which no connection is permitted; the operator allows it by --allow" in log[0]
    assert len(workload.requests) == 0 and not cloud.vims


@pytest.mark.parametrize("what", ["url", "ca"])
def test_a_vim_gets_no_other_url_or_ca_until_an_operator_confirms_it(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, what: str, log: list[str]
) -> None:
    registrar.store.accept(ready(workload))
    registrar.reconcile()
    before = {id: dict(vim) for id, vim in cloud.vims.items()}
    with FakeApi(tls=True) as other:
        issue(other, "token-of-another")
        message = ready(other, seconds=1)
        if what == "ca":
            text = message.kubeconfig.replace(other.url, workload.url)
            message = replace(message, kubeconfig=text, endpoint=workload.url)
        stored = registrar.store.accept(message)
        requests = len(workload.requests)
        for _ in range(2):
            retry_now(registrar)
        assert cloud.vims == before and (len(other.requests), len(workload.requests)) == (0, requests)
        [held] = [line for line in log if "until an operator confirms" in line]
        assert stored.identity in held and f"confirm --folder {registrar.store.folder} {stored.name}" in held
        registrar.store.confirm(stored)
        retry_now(registrar)
    assert (cloud.vims != before) is (what == "url"), "of the other CA only the certificate is another, which is not accepted"
    assert "another" not in log[1]


def test_a_confirmation_is_for_one_change(registrar: Registrar, workload: FakeApi, cloud: Cloud) -> None:
    with FakeApi(tls=True) as one, FakeApi(tls=True) as two:
        for server in (one, two):
            issue(server, OWN_TOKEN)
        registrar.store.accept(ready(workload))
        registrar.reconcile()
        registrar.store.confirm(registrar.store.accept(ready(one, seconds=1)))
        registrar.store.accept(ready(two, seconds=2))
        registrar.reconcile()
        assert [vim["auth_url"] for vim in cloud.vims.values()] == [workload.url] and len(two.requests) == 0
        registrar.store.accept(ready(one, seconds=3))
        registrar.reconcile()
        assert [vim["auth_url"] for vim in cloud.vims.values()] == [one.url]
        registrar.store.accept(ready(workload, seconds=4))
        registrar.store.accept(ready(one, seconds=5))
        registrar.reconcile()
        registrar.store.accept(ready(workload, seconds=6))
        registrar.reconcile()
        assert [vim["auth_url"] for vim in cloud.vims.values()] == [one.url]


def test_a_message_that_comes_during_a_try_is_judged_before_it_is_used(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    registrar.store.accept(ready(workload))
    registrar.reconcile()
    registrar.store.accept(ready(workload, "another-admin", seconds=1))
    seen = registrar.store.clusters()
    with FakeApi(tls=True) as other:
        registrar.store.accept(ready(other, seconds=2))
        monkeypatch.setattr(registrar.store, "clusters", lambda: seen)
        registrar.reconcile()
        assert len(other.requests) == 0 and len(cloud.vims) == 1


def test_many_clusters_of_an_instance_have_a_few_threads(
    registrar: Registrar, workload: FakeApi, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, release, before = [], threading.Event(), set(threading.enumerate())

    def token(_: Connection) -> str:
        entered.append(1)
        assert release.wait(30)
        return OWN_TOKEN

    monkeypatch.setattr(service_account, "token", token)
    for number in range(20):
        registrar.store.accept(replace(ready(workload), cluster=f"default/red-{number}"))
    registrar.start()
    wait_until(lambda: len(entered) >= registration.EACH)
    assert sum(one.name.startswith("register default/red-") for one in set(threading.enumerate()) - before) == registration.EACH
    release.set()
    wait_until(lambda: len(cloud.vims) == 20)


def test_a_cluster_that_never_opens_is_given_up_until_it_is_sent_again(
    registrar: Registrar, workload: FakeApi, monkeypatch: pytest.MonkeyPatch, log: list[str]
) -> None:
    monkeypatch.setattr(registration, "TRIES", 1)
    workload.fail(faults.internal(), times=2)
    registrar.store.accept(ready(workload))
    registrar.reconcile()
    monkeypatch.setattr("time.monotonic", lambda: 1e12)
    registrar.reconcile()
    assert len(log) == 1 and "its VIM is not current, next try when it is sent again: " in log[0]
    monkeypatch.undo()
    retry_now(registrar)
    assert len(log) == 2
