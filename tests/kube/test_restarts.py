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
        api.fail(faults.forbidden())
        with pytest.raises(JustRestarted):
            connection.request("GET", MAPS)


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


def test_an_aggregated_api_that_is_down_says_nothing_of_the_api_server(api: FakeApi, connection: Connection) -> None:
    api.cluster.knobs.down = {("metrics.k8s.io", "v1beta1")}
    with pytest.raises(ApiError, match="503"):
        connection.request("GET", "/apis/metrics.k8s.io/v1beta1/pods")
    api.fail(faults.forbidden())
    with pytest.raises(ApiError, match="403"):
        connection.request("GET", MAPS)


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
        connection.request("GET", MAPS)


def test_after_the_grace_a_403_is_final_however_often_it_was_repeated(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(restarts, "time", clock)
    goes_away(api, connection)
    api.fail(faults.forbidden(), times=100)
    for _ in range(3):
        with pytest.raises(JustRestarted):
            connection.request("GET", MAPS)
        clock.now += restarts.FORBIDDEN_GRACE / 3
    with pytest.raises(ApiError, match="403 Forbidden"):
        connection.request("GET", MAPS)


def test_connections_to_the_same_cluster_know_it_and_those_to_others_do_not(api: FakeApi, connection: Connection) -> None:
    never = threading.Event().is_set
    with connection.until(float("inf"), never) as same, FakeApi() as other:
        goes_away(api, same)
        for one in (connection, DryRun.over(connection), same.until(float("inf"), never)):
            api.fail(faults.forbidden("patch"))
            with pytest.raises(JustRestarted):
                write(one)
        other.fail(faults.forbidden())
        with connection.to(Endpoint(other.url), 1000) as to, pytest.raises(ApiError):
            to.request("GET", MAPS)
