# SPDX-License-Identifier: Apache-2.0
"""Whoever names a Keystone leads the requests of the driver nowhere else, and sees no responses of other services."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from k8s_cr_driver.cloud import access, session
from k8s_cr_driver.cloud.session import CloudError
from k8s_cr_driver.credentials.tacker import Tacker
from k8s_cr_driver.errors import DriverError, NotPermitted
from k8s_cr_driver.kube.endpoint_rules import EndpointRules

from . import openstack
from .openstack import OpenStack, Raw

ONE = EndpointRules(("127.0.0.1",), plain_http=True)
PATH = "/compute/servers/s1"


@pytest.fixture
def cloud() -> Iterator[OpenStack]:
    with openstack.serving() as one:
        yield one


def get(cloud: OpenStack, rules: EndpointRules = ONE) -> Any:
    vim = cloud.vim()
    return access.of_vim(vim["interfaceInfo"], vim["accessInfo"], verify=False, rules=rules).get("compute", "/servers/s1")


@pytest.mark.parametrize(
    ("catalog", "words"),
    [
        ("http://127.0.0.2", r"http://127\.0\.0\.2: no connection to this host is permitted; .* \[k8s_cr\] allowed_endpoints"),
        ("http://169.254.169.254", "no connection to this host is permitted"),
        ("http://127.0.0.1:1/a?b=", "has a query"),
        ("http://user:word@127.0.0.1", "has a query, a fragment"),
        ("file:///etc/passwd", "no connection|is not https|has a query"),
    ],
)
def test_an_endpoint_of_the_catalog_is_judged(cloud: OpenStack, catalog: str, words: str) -> None:
    cloud.catalog = catalog
    with pytest.raises(NotPermitted, match=words) as raised:
        get(cloud)
    assert "word@" not in str(raised.value)
    assert not cloud.seen


def test_keystone_itself_is_judged(cloud: OpenStack) -> None:
    with pytest.raises(NotPermitted, match="is not https; the operator allows http by"):
        get(cloud, EndpointRules(("127.0.0.1",)))
    with pytest.raises(NotPermitted, match="no connection to this host is permitted"):
        get(cloud, EndpointRules(plain_http=True))


@pytest.mark.parametrize("location", ["/compute/other", "http://[", "http://169.254.169.254/latest"])
def test_a_redirect_is_not_followed(cloud: OpenStack, location: str) -> None:
    cloud.responses[PATH] = Raw(302, headers={"Location": location})
    with pytest.raises(CloudError, match=r"GET /servers/s1: status 302$"):
        get(cloud)
    assert cloud.seen == [f"GET {PATH}"]


def test_of_keystone_neither(cloud: OpenStack) -> None:
    cloud.authenticated = Raw(305, headers={"Location": f"{cloud.url}/compute/other"})
    with pytest.raises(CloudError, match="OpenStack, compute: GET /servers/s1: "):
        get(cloud)
    assert cloud.seen == []


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"root:x:0:0:root", ""),
        (b'"root:x:0:0"', ""),
        (b'{"kind": "Status", "message": "of a cluster"}', ""),
        (b'{"data": {"password": "word"}}', ""),
        (b'{"itemNotFound": {"code": 404, "message": "Instance s1 could not be found."}}', ": Instance s1 could not be found."),
        (b'{"code": 404, "error": {"message": "no stack", "traceback": "line 1"}}', ": no stack"),
        (b'{"error": {"message": "' + b"a b" * 1000 + b'"}}', ": " + ("a b" * 1000)[:200]),
        (b'{"error": {"message": "password: word"}}', ": password: [removed]"),
        (b'{"error": {"message": ["word"]}}', ""),
        (b"[" * 100_000, ""),
    ],
)
def test_of_a_refusal_the_message_is_shown_that_openstack_has(cloud: OpenStack, content: bytes, shown: str) -> None:
    cloud.responses[PATH] = Raw(404, content)
    with pytest.raises(CloudError) as raised:
        get(cloud)
    assert str(raised.value) == f"OpenStack, compute: GET /servers/s1: status 404{shown}"


def test_neither_is_more_of_keystones_refusal(cloud: OpenStack) -> None:
    cloud.authenticated = Raw(403, b'{"data": {"message-of": "an internal service"}}')
    with pytest.raises(CloudError) as raised:
        get(cloud)
    assert str(raised.value) == "OpenStack, compute: GET /servers/s1: status 403"


def test_nor_of_what_lists_no_versions(cloud: OpenStack) -> None:
    """The plugin that clouds.yaml has by default asks Keystone for them."""
    cloud.responses["/other"] = Raw(200, b"an internal service")
    auth = {"auth_url": f"{cloud.url}/other", "username": "u", "password": "secret-word", "project_name": "p",
            "user_domain_id": "d", "project_domain_id": "d"}  # fmt: skip
    with pytest.raises(DriverError) as raised:
        Tacker({"auth": auth}).remove("blue", "")
    assert "internal" not in str(raised.value)


def test_a_response_has_a_limit(cloud: OpenStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "RESPONSE_LIMIT", 10_000)
    cloud.responses[PATH] = {"server": "a" * 10_000}
    with pytest.raises(CloudError, match="more than 10000 bytes"):
        get(cloud)
    assert len(cloud.seen) == 1, "it is as large the next time"


def test_no_service_says_how_long_it_is_waited_for(cloud: OpenStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "AWAY_WITHIN", 2.0)
    cloud.responses[PATH] = Raw(503, headers={"Retry-After": "100000"})
    started = time.monotonic()
    with pytest.raises(CloudError, match=r"status 503; it was waited for, [01] s"):
        get(cloud)
    assert time.monotonic() - started < 60
    assert len(cloud.seen) > 2


@pytest.mark.parametrize(
    "token",
    [
        *([], 1, "a", {}, {"token": 1}, {"token": []}, {"token": {"catalog": 1}}, {"token": {"catalog": [1]}}),
        *({"token": {"catalog": [{"type": "compute", "endpoints": [{"url": 1, "interface": "public"}]}]}},),
        *({"token": {"catalog": [], "expires_at": 5}}, Raw(201, b"[" * 100_000)),
    ],
)
def test_a_token_that_is_malformed_is_an_error_of_the_cloud(cloud: OpenStack, token: Any) -> None:
    cloud.authenticated = token
    with pytest.raises((CloudError, NotPermitted), match=r"^OpenStack, compute: GET /servers/s1: "):
        get(cloud)


def test_the_api_of_tacker_is_asked_in_the_same_way(cloud: OpenStack) -> None:
    vim = cloud.vim()["accessInfo"]
    auth: dict[str, str] = {"auth_url": f"{cloud.url}/v3", "username": "u", "password": vim["password"], "project_name": "p",
            "user_domain_id": "d", "project_domain_id": "d"}  # fmt: skip
    cloud.responses["/nfv-orchestration/v1.0/vims"] = Raw(302, headers={"Location": f"{cloud.url}/nfv-orchestration/other"})
    with pytest.raises(DriverError, match=r"^Tacker: GET /v1.0/vims: status 302$"):
        Tacker({"auth": auth}).remove("blue", "")
    assert [one.partition("?")[0] for one in cloud.seen] == ["GET /nfv-orchestration/v1.0/vims"]
