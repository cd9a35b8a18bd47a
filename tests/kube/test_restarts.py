# SPDX-License-Identifier: Apache-2.0
"""What an API server forbids that may have just restarted may be allowed soon; what any other forbids is forbidden."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from k8s_cr_driver.errors import ApiError, JustRestarted, TransportError, passes
from k8s_cr_driver.kube import restarts
from k8s_cr_driver.kube.connection import APPLY, Connection
from k8s_cr_driver.kube.dry_run import DryRun
from k8s_cr_driver.kube.endpoint import Endpoint
from tests.fake_api import FakeApi, errors, faults
from tests.fake_api.objects import Object
from tests.instance import config_map
from tests.kube.clock import Clock
from tests.times import REAL, change_times

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def connection(api: FakeApi) -> Iterator[Connection]:
    with Connection(Endpoint(api.url)) as one:
        yield one


def write(connection: Connection) -> Object:
    return connection.request("PATCH", f"{MAPS}/a", query=[("fieldManager", "m")], body=config_map("a"), content_type=APPLY)


def goes_away(api: FakeApi, connection: Connection, how: faults.Action | None = None) -> None:
    """One request fails so."""
    api.fail(how or faults.unavailable())
    with pytest.raises((ApiError, TransportError)):
        connection.request("GET", MAPS)


AWAY = {
    "502": faults.status(502),
    "503": faults.unavailable(),
    "504": faults.Answer(errors.timed_out()),
    "no response": faults.reset_before(),
    "lost response": faults.reset_after(),
    "half a response": faults.truncated(),
}


@pytest.mark.parametrize("how", AWAY)
def test_a_403_of_a_server_that_was_away_passes(api: FakeApi, connection: Connection, how: str) -> None:
    goes_away(api, connection, AWAY[how])
    api.fail(faults.forbidden("patch"))
    with pytest.raises(JustRestarted) as raised:
        write(connection)
    assert passes(raised.value)
    assert str(raised.value) == (
        f'PATCH {MAPS}/a: 403 Forbidden: configmaps is forbidden: User "tacker" cannot patch resource "configmaps" in API '
        'group "" in the namespace "default" (the API server may have just restarted, and not have read its RBAC yet)'
    )
    assert write(connection)["metadata"]["name"] == "a"


def test_a_server_that_cannot_be_connected_to_may_restart(api: FakeApi) -> None:
    with FakeApi() as closed:
        url = closed.url
    with Connection(Endpoint(url)) as connection:
        with pytest.raises(TransportError, match="cannot connect"):
            connection.request("GET", MAPS)
        connection.endpoint = Endpoint(api.url)
        api.fail(faults.forbidden("patch"))
        with pytest.raises(JustRestarted):
            write(connection)


def test_a_403_to_a_read_is_no_answer_either(api: FakeApi, connection: Connection) -> None:
    """Callers go by it: what may not be listed is left out."""
    goes_away(api, connection)
    api.fail(faults.forbidden())
    with pytest.raises(JustRestarted):
        connection.request("GET", MAPS)
    assert connection.request("GET", MAPS)["items"] == []


@pytest.mark.parametrize(
    "how",
    [faults.internal(), faults.too_many(), faults.not_found(), faults.denied("no", 503, "ServiceUnavailable"), faults.gone()],
    ids=["500", "429", "404", "503 of a webhook", "410"],
)
def test_a_server_that_has_responded_was_not_away(api: FakeApi, connection: Connection, how: faults.Action) -> None:
    goes_away(api, connection, how)
    api.fail(faults.forbidden("patch"))
    with pytest.raises(ApiError) as raised:
        write(connection)
    assert not passes(raised.value)


@pytest.mark.parametrize(
    "refusal",
    [
        faults.denied("not on Fridays"),
        faults.denied('pods is forbidden: User "tacker" cannot create resource "pods" by this policy'),
        faults.status(403, "Forbidden", 'configmaps "a" is forbidden: exceeded quota: q, requested: count/configmaps=1'),
        faults.status(403, "Forbidden", 'pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged'),
        faults.status(403, "Forbidden", 'roles "a" is forbidden: user "u" is attempting to grant RBAC permissions not held'),
        faults.status(403, "Forbidden", 'pods "forbidden: User \\"\\" cannot list resource \\"x\\"" is forbidden: no'),
        faults.status(403, "Forbidden", ""),
    ],
    ids=["webhook", "webhook in RBAC's words", "quota", "PodSecurity", "grant", "name", "no words"],
)
def test_a_403_of_another_than_the_authorizer_is_final(api: FakeApi, connection: Connection, refusal: faults.Action) -> None:
    goes_away(api, connection)
    api.fail(refusal)
    with pytest.raises(ApiError) as raised:
        write(connection)
    assert raised.value.status == 403


@pytest.mark.parametrize(
    "words",
    [
        'forbidden: User "system:anonymous" cannot get path "/apis"',
        'pods "a" is forbidden: User "o\\"x" cannot patch resource "pods/status" in API group "" at the cluster scope: RBAC: '
        'clusterrole.rbac.authorization.k8s.io "edit" not found',
    ],
)
def test_the_words_of_the_authorizer_are_known(api: FakeApi, connection: Connection, words: str) -> None:
    goes_away(api, connection)
    api.fail(faults.status(403, "Forbidden", words))
    with pytest.raises(JustRestarted):
        write(connection)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(restarts, "time", clock)
    change_times(monkeypatch, forbidden=REAL.forbidden)
    return clock


def refused(api: FakeApi, connection: Connection) -> ApiError | JustRestarted:
    api.fail(faults.forbidden("patch"))
    with pytest.raises((ApiError, JustRestarted)) as raised:
        write(connection)
    return raised.value


def test_a_403_long_after_the_last_sign_is_final(api: FakeApi, connection: Connection, clock: Clock) -> None:
    goes_away(api, connection)
    clock.now += REAL.forbidden
    assert isinstance(refused(api, connection), ApiError)


def test_signs_that_recur_do_not_hide_a_missing_permission(api: FakeApi, connection: Connection, clock: Clock) -> None:
    """As where a load balancer cuts connections every 50 s."""
    for _ in range(3):
        goes_away(api, connection)
        assert isinstance(refused(api, connection), JustRestarted)
        clock.now += REAL.forbidden / 3
    goes_away(api, connection)
    assert isinstance(refused(api, connection), ApiError)


def test_a_write_that_was_allowed_since_may_be_forbidden_as_long_again(
    api: FakeApi, connection: Connection, clock: Clock
) -> None:
    for _ in range(2):
        goes_away(api, connection)
        assert isinstance(refused(api, connection), JustRestarted)
        write(connection)
        clock.now += REAL.forbidden


@pytest.mark.parametrize(
    "refusal", [faults.denied("not yet"), faults.webhook_down(), faults.conflict()], ids=["denied", "webhook down", "409"]
)
def test_a_write_that_another_than_the_authorizer_has_refused_since_may_be_forbidden_as_long_again(
    api: FakeApi, connection: Connection, clock: Clock, refusal: faults.Action
) -> None:
    for _ in range(2):
        goes_away(api, connection)
        assert isinstance(refused(api, connection), JustRestarted)
        api.fail(refusal)
        with pytest.raises(ApiError):
            write(connection)
        clock.now += REAL.forbidden


def test_connections_to_the_same_cluster_know_it_and_those_to_others_do_not(api: FakeApi, connection: Connection) -> None:
    never = threading.Event().is_set
    with connection.until(float("inf"), never) as same, FakeApi() as other:
        goes_away(api, same)
        for one in (connection, DryRun.over(connection), same.until(float("inf"), never)):
            api.fail(faults.forbidden("patch"))
            with pytest.raises(JustRestarted):
                write(one)
        with connection.to(Endpoint(other.url), 1000) as to:
            assert isinstance(refused(other, to), ApiError)
