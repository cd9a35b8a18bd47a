# SPDX-License-Identifier: Apache-2.0
"""Whether the credentials of a clouds.yaml open their cloud, and what is said when they do not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube import once, openstack
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.objects.keys import CloudEntry, SecretEntry
from k8s_cr_driver.redaction import foreign
from tests.credentials.clusters import put_secret
from tests.fake_api import FakeApi
from tests.fake_api.tls import server_context
from tests.kube.keystone import PASSWORD, SECRET, TOKEN, Keystone, as_json, keystone, put_clouds

WHERE = "cloud openstack in clouds.yaml of the Secret default/cloud-config"
CLOUD = CloudEntry(SecretEntry("default", "cloud-config", "clouds.yaml"), "openstack")
BY_PASSWORD = {"username": "capo", "password": PASSWORD, "user_domain_name": "Default", "project_name": "k8s",
               "project_domain_name": "Default"}  # fmt: skip
SECRETS = (SECRET, PASSWORD, TOKEN)


@pytest.fixture
def cloud() -> Iterator[Keystone]:
    with keystone() as found:
        yield found


def check(api: FakeApi, where: CloudEntry = CLOUD, **endpoint: Any) -> str:
    with Connection(Endpoint(api.url, **endpoint)) as connection:
        return openstack.check(connection, where)


def why_not(api: FakeApi, where: CloudEntry = CLOUD, **endpoint: Any) -> str:
    with pytest.raises(DriverError) as error:
        check(api, where, **endpoint)
    assert error.value.__context__ is None or error.value.__suppress_context__
    assert foreign(str(error.value)) == str(error.value)  # the report of the object leaves none of its words out
    return str(error.value)


def test_an_application_credential_opens_its_cloud_with_one_request(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth(project_name="is-not-sent", project_domain_name="Default"))
    assert check(api) == ""
    assert cloud.requests == ["POST /v3/auth/tokens"]
    identity = {"methods": ["application_credential"], "application_credential": {"id": "1", "secret": SECRET}}
    assert cloud.bodies == [{"auth": {"identity": identity}}]


@pytest.mark.parametrize("suffix", ["", "/", "/v3", "/v3/"])
def test_a_password_opens_its_cloud_whether_or_not_its_url_has_the_version(api: FakeApi, cloud: Keystone, suffix: str) -> None:
    put_clouds(api, {**BY_PASSWORD, "auth_url": cloud.url.removesuffix("/v3") + suffix})
    assert check(api) == ""
    assert cloud.requests == ["POST /v3/auth/tokens"]
    assert cloud.bodies[0]["auth"]["scope"] == {"project": {"name": "k8s", "domain": {"name": "Default"}}}


def test_the_default_domain_is_that_of_user_and_project(api: FakeApi, cloud: Keystone) -> None:
    auth = {"auth_url": cloud.url, "username": "capo", "password": PASSWORD, "project_name": "k8s", "default_domain": "default"}
    put_clouds(api, auth)
    assert check(api) == ""
    sent = cloud.bodies[0]["auth"]
    assert sent["scope"]["project"]["domain"] == sent["identity"]["password"]["user"]["domain"] == {"id": "default"}


def test_refused_credentials_are_named_by_their_secret_and_never_shown(
    api: FakeApi, cloud: Keystone, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    put_clouds(api, cloud.auth(application_credential_secret="wrong-and-never-shown"))
    assert why_not(api) == f"Keystone at {cloud.url} refuses the credentials (401): {WHERE}"
    assert "wrong-and-never-shown" not in caplog.text


def test_no_log_has_the_token_or_the_credentials_that_opened_a_cloud(
    api: FakeApi, cloud: Keystone, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    put_clouds(api, cloud.auth())
    check(api)
    assert not [one for one in SECRETS if one in caplog.text]


def test_no_log_has_the_response_to_the_credentials(
    api: FakeApi, cloud: Keystone, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="keystoneauth")
    put_clouds(api, cloud.auth())
    status, headers, content = as_json(201, {"token": {"id": TOKEN, "methods": ["token"]}})
    cloud.answers = [(status, {**headers, "X-Subject-Token": TOKEN}, content)]
    check(api)
    assert TOKEN not in caplog.text


def test_a_keystone_that_does_not_run_cannot_be_reached(api: FakeApi) -> None:
    with keystone() as gone:
        put_clouds(api, gone.auth())
    assert why_not(api).startswith(f"Keystone cannot be reached: POST {gone.url}/auth/tokens: ")


def test_a_keystone_that_does_not_respond_is_not_waited_for(
    api: FakeApi, cloud: Keystone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openstack, "WITHIN", 0.3)
    answers = threading.Event()
    monkeypatch.setattr(Keystone, "answer", lambda *_: answers.wait(30) and as_json(201, {}))
    put_clouds(api, cloud.auth())
    assert why_not(api).startswith("Keystone cannot be reached: ")
    answers.set()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((302, {"Location": "/elsewhere"}, b""), "responds to the credentials with 302"),
        (as_json(404, {}), "does not know the credentials, or is no Keystone (404): cloud openstack"),
        (as_json(503, {}), "responds to the credentials with 503"),
        (as_json(201, {"token": {}}), "gave no token"),
        (as_json(201, ["token"]), "gave no token"),
        ((201, {"X-Subject-Token": TOKEN}, b"<html>"), "gave no token"),
        ((201, {"X-Subject-Token": " "}, b'{"token": {}}'), "gave no token"),
        ((201, {}, b"x" * (once.RESPONSE_LIMIT + 1)), "the response has more than"),
    ],
)
def test_what_is_no_token_is_named_and_no_redirect_followed(
    api: FakeApi, cloud: Keystone, answer: Any, reason: str
) -> None:
    cloud.answers.append(answer)
    put_clouds(api, cloud.auth())
    assert reason in why_not(api)
    assert len(cloud.requests) == 1


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (None, "the Secret default/cloud-config, which is to have the cloud openstack, does not exist"),
        ({"config": ""}, "Secret default/cloud-config of the management cluster has no clouds.yaml"),
        ({"clouds.yaml": "{"}, "clouds.yaml of the Secret default/cloud-config is no YAML"),
        ({"clouds.yaml": "- 1"}, f"there is no {WHERE}, or it has no auth"),
        ({"clouds.yaml": "clouds: {other: {auth: {auth_url: 'http://127.0.0.1'}}}"}, "there is no cloud openstack"),
        ({"clouds.yaml": "clouds: {openstack: {auth: {password: hunter2}}}"}, "is no plain URL"),
        ({"clouds.yaml": "clouds: {openstack: {auth: {auth_url: 'http://a:hunter2@127.0.0.1'}}}"}, "is no plain URL"),
        ({"clouds.yaml": "clouds: {openstack: {auth: {auth_url: 'http://127.0.0.1/a?b'}}}"}, "is no plain URL"),
    ],
)
def test_a_secret_that_names_no_cloud_is_named_itself(api: FakeApi, values: dict[str, str] | None, reason: str) -> None:
    if values is not None:
        put_secret(api, "cloud-config", values)
    found = why_not(api)
    assert reason in found
    assert "hunter2" not in found


@pytest.mark.parametrize("auth", [{"password": "hunter2", "project_name": "k8s"}, {"application_credential_secret": "hunter2"}])
def test_credentials_that_miss_a_key_are_not_sent(api: FakeApi, cloud: Keystone, auth: dict[str, str]) -> None:
    put_clouds(api, {"auth_url": cloud.url, **auth})
    found = why_not(api)
    assert "misses a key" in found
    assert "hunter2" not in found
    assert not cloud.requests


def test_the_rules_for_endpoints_judge_the_address_of_a_cloud(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth(auth_url=cloud.url.replace("127.0.0.1", "localhost")))
    rules = EndpointRules(("127.0.0.1", "*.example.com"), plain_http=True)
    assert check(api, judge=rules) == ""

    def only_the_cluster(host: str, addresses: Any) -> Any:
        return addresses if host == "127.0.0.1" else EndpointRules()(host, addresses)

    assert "localhost: resolves to an address to which no connection is permitted" in why_not(api, judge=only_the_cluster)
    assert len(cloud.requests) == 1


@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_credentials_go_to_http_only_where_the_operator_allows_it(cloud: Keystone, scheme: str) -> None:
    with FakeApi(tls=True) as api:
        put_clouds(api, cloud.auth(auth_url=cloud.url.replace("http", scheme)))
        assert "not https, so the credentials were not sent there" in why_not(api, ca=api.ca_cert)
        assert check(api, ca=api.ca_cert, plain_http=True) == ""
    assert len(cloud.requests) == 1


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_the_ca_of_a_cloud_is_that_in_its_secret(api: FakeApi) -> None:
    context, ca = server_context()
    with keystone(context) as cloud:
        put_clouds(api, cloud.auth())
        assert f"The certificate of {cloud.url}/auth/tokens was not accepted" in why_not(api)
        put_clouds(api, cloud.auth(), ca)
        assert check(api) == ""
        put_clouds(api, cloud.auth(auth_url=cloud.url.replace("https", "HTTPS")), ca)
        assert check(api) == ""
        put_clouds(api, cloud.auth(), verify=False)
        assert check(api) == ""
        put_clouds(api, cloud.auth(), "damaged")
        assert why_not(api) == "cacert of the Secret default/cloud-config is no CA in PEM"


def test_nova_says_why_a_server_failed(api: FakeApi, cloud: Keystone) -> None:
    cloud.faults["42"] = {"code": 500, "message": f"No valid host was found {TOKEN}. "}
    put_clouds(api, cloud.auth())
    assert check(api, CLOUD._replace(server="42")) == "No valid host was found [removed]"
    assert cloud.requests == ["POST /v3/auth/tokens", "GET /compute/v2.1/servers/42"]


@pytest.mark.parametrize("fault", [None, {}, {"message": 1}, "message"])
def test_a_server_without_a_fault_has_none(api: FakeApi, cloud: Keystone, fault: Any) -> None:
    cloud.faults["42"] = fault
    put_clouds(api, cloud.auth())
    assert check(api, CLOUD._replace(server="42")) == ""


def test_a_server_is_looked_for_in_the_region_that_is_named(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth(), region_name="RegionOne")
    assert "responds with 404 to a read of the server a/b" in why_not(api, CLOUD._replace(server="a/b"))
    assert cloud.requests[-1] == "GET /compute/v2.1/servers/a%2Fb"
    assert "has no public compute endpoint" in why_not(api, CLOUD._replace(server="42", region="RegionTwo"))


@pytest.mark.parametrize("catalog", [b"null", b"[5]", b"[" * 290 + b"]" * 290, b'[{"type": "compute", "endpoints": [5]}]'])
def test_an_odd_catalog_has_no_endpoint(api: FakeApi, cloud: Keystone, catalog: bytes) -> None:
    cloud.answers.append((201, {"X-Subject-Token": TOKEN}, b'{"token": {"catalog": %s}}' % catalog))
    put_clouds(api, cloud.auth())
    assert why_not(api, CLOUD._replace(server="42")) == f"the catalog of Keystone at {cloud.url} has no public compute endpoint"
