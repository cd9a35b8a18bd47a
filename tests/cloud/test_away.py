# SPDX-License-Identifier: Apache-2.0
"""A service of the cloud that is away for a while: it is waited for until the deadline, and the log and the error name it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from k8s_cr_driver.cloud import access, stack
from k8s_cr_driver.cloud.session import Away, CloudError
from k8s_cr_driver.kube.endpoint_rules import EndpointRules

from . import openstack, stacks
from .openstack import OpenStack, Raw

LOCAL = EndpointRules(("127.0.0.0/8",), plain_http=True)
NAME = f"vnf-{stacks.INSTANCE}"
STACK = f"/orchestration/stacks/{NAME}/{stacks.STACK}/resources"
HEAT = f"OpenStack, orchestration: GET /stacks/{NAME}/{stacks.STACK}/resources"


@pytest.fixture
def cloud() -> Iterator[OpenStack]:
    with openstack.serving() as one:
        stacks.fill(one)
        yield one


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "PAUSE", 0.01)


@pytest.fixture
def free_port() -> int:
    """Nothing listens there."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def opened(
    cloud: OpenStack, progress: Callable[[str], None] = lambda _: None, within: float = 60.0, keystone: str = ""
) -> access.Cloud:
    vim = cloud.vim()
    interface = {"endpoint": keystone} if keystone else vim["interfaceInfo"]
    return access.of_vim(interface, vim["accessInfo"], False, LOCAL, time.monotonic() + within, progress)


def read(cloud: access.Cloud) -> stack.Stack:
    return stack.read(cloud, NAME, stacks.STACK)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_service_with_a_5xx_is_asked_again(cloud: OpenStack, status: int) -> None:
    cloud.failures, lines = [status] * 60, []
    assert read(opened(cloud, lines.append)).resources
    assert len(cloud.seen) == 63
    assert lines == [f"waits for a service: {HEAT}: status {status}"], "once, however long it takes"


@pytest.mark.parametrize("status", [400, 404, 409])
def test_a_refusal_is_none_that_passes(cloud: OpenStack, status: int) -> None:
    cloud.failures = [status]
    with pytest.raises(CloudError, match=f"status {status}$"):
        read(opened(cloud))
    assert len(cloud.seen) == 1


def test_a_service_that_refuses_connections_is_asked_again(cloud: OpenStack, free_port: int) -> None:
    """Keystone responds, and its catalog leads to what is not there yet."""
    cloud.catalog, lines = f"http://127.0.0.1:{free_port}", []
    with ExitStack() as services:

        def start(line: str) -> None:
            lines.append(line)
            stacks.fill(services.enter_context(openstack.serving(free_port)))

        assert read(opened(cloud, start)).resources
    assert len(lines) == 1
    assert lines[0].startswith(f"waits for a service: {HEAT}: ") and f"127.0.0.1:{free_port}" in lines[0]


def test_keystone_is_asked_again_as_well(free_port: int) -> None:
    lines = []
    with ExitStack() as services:

        def start(line: str) -> None:
            lines.append(line)
            stacks.fill(services.enter_context(openstack.serving(free_port)))

        found = opened(OpenStack(), start, keystone=f"http://127.0.0.1:{free_port}/v3")
        assert found.project() == openstack.PROJECT
        assert read(found).resources
    assert len(lines) == 1
    assert lines[0].startswith("waits for a service: OpenStack, identity: ")


def test_neither_5xx_of_keystone_is_final(cloud: OpenStack) -> None:
    cloud.authenticated, lines = Raw(503), []

    def recover(line: str) -> None:
        lines.append(line)
        cloud.authenticated = None

    assert read(opened(cloud, recover)).resources
    assert lines == [f"waits for a service: {HEAT}: status 503"]


@pytest.mark.parametrize(("within", "away_within"), [(1.3, 60.0), (60.0, 1.3)], ids=["of the operation", "of the service"])
def test_the_error_at_the_deadline_names_the_service(
    cloud: OpenStack, monkeypatch: pytest.MonkeyPatch, within: float, away_within: float
) -> None:
    monkeypatch.setattr(access, "AWAY_WITHIN", away_within)
    cloud.responses[STACK] = Raw(503, b'{"error": {"message": "no engine"}}')
    with pytest.raises(Away, match=r"status 503: no engine; it was waited for, [01] s$"):
        read(opened(cloud, within=within))


def test_a_silent_service_does_not_outlast_the_operation(cloud: OpenStack) -> None:
    """It accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cloud.catalog = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(Away, match=HEAT):
            read(opened(cloud, within=0.3))
    assert time.monotonic() - started < 5
