# SPDX-License-Identifier: Apache-2.0
"""What of a kubeconfig is honoured, what is refused, and the one that the driver writes itself."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube import kubeconfig
from k8s_cr_driver.kube.endpoint import Endpoint

URL = "https://192.0.2.1:6443"


def content(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any) -> str:
    whole = {
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": URL, **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "t", **(user or {})}}],
        "current-context": "a",
    }
    return yaml.safe_dump({**whole, **more})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def problem(text: str) -> str:
    with pytest.raises(InvalidRequest) as error:
        kubeconfig.parse(text, "config")
    return str(error.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("as", "admin"), ("as-uid", "1"), ("as-groups", ["system:masters"]), ("as-user-extra", {"a": ["b"]})),
        *(("username", "a"), ("password", "b"), ("exec", {"command": "login"}), ("tokenFile", "/etc/passwd")),
    ],
)
def test_a_field_of_a_user_is_honoured_or_refused(field: str, value: Any) -> None:
    found = problem(content(user={field: value}))
    assert found.startswith(f"config: user u has {field}, which ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("proxy-url", "http://127.0.0.1:3128"), ("tls-server-name", "other.example.com"), ("a-later-field", 1)),
        ("certificate-authority", "/etc/ssl/ca.pem"),
    ],
)
def test_a_field_of_a_cluster_is_honoured_or_refused(field: str, value: Any) -> None:
    assert problem(content({field: value})).startswith(f"config: cluster c has {field}, which ")


def test_a_field_of_a_context_is_honoured_or_refused() -> None:
    context = {"cluster": "c", "user": "u", "later\nfield": 1}
    assert "context a has later\\nfield, which" in problem(content(contexts=[{"name": "a", "context": context}]))


def test_what_changes_no_connection_and_what_is_empty_is_accepted() -> None:
    extensions = [{"name": "a", "extension": {"b": 1}}]
    cluster = {"extensions": extensions, "disable-compression": True, "proxy-url": "", "insecure-skip-tls-verify": None}
    found = kubeconfig.parse(content(cluster, {"as": "", "exec": None}), "config")
    assert found == Endpoint(URL, authorization="Bearer t")


@pytest.mark.parametrize("value", ["false", "true", 1, ["a"]])
def test_a_verification_that_is_no_boolean_is_an_error(value: Any) -> None:
    found = problem(content({"insecure-skip-tls-verify": value}))
    assert found == "config: insecure-skip-tls-verify must be true or false, without quotes"


def test_a_name_that_two_entries_have_is_an_error() -> None:
    """Which of them a reader takes is its own matter."""
    two = [{"name": "u", "user": {"token": one}} for one in "ab"]
    assert problem(content(users=two)) == "config: two users have the same name; remove one"


def test_what_is_written_has_one_cluster_one_user_one_context_and_no_other_field() -> None:
    cluster = {"certificate-authority-data": encoded("CA"), "extensions": [{"name": "a", "extension": {}}]}
    user = {"client-certificate-data": encoded("certificate"), "client-key-data": encoded("key")}
    others = [{"name": "other", "user": {"exec": {"command": "evil"}}}]
    given = yaml.safe_load(content(cluster, user, preferences={"colors": True}))
    found = kubeconfig.parse(yaml.safe_dump({**given, "users": given["users"] + others}), "config")
    text = kubeconfig.written(found, "red", "config")
    assert yaml.safe_load(text) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "red", "cluster": {"server": URL, "certificate-authority-data": encoded("CA")}}],
        "users": [{"name": "red-admin", "user": {"token": "t", **user}}],
        "contexts": [{"name": "red-admin@red", "context": {"cluster": "red", "user": "red-admin"}}],
        "current-context": "red-admin@red",
    }
    again = kubeconfig.parse(text, "config")
    assert again == found and kubeconfig.written(again, "red", "config") == text


def test_nothing_is_written_whose_certificate_is_not_to_be_verified() -> None:
    found = kubeconfig.parse(content({"insecure-skip-tls-verify": True}), "config")
    with pytest.raises(InvalidRequest, match=r"^config: cluster has insecure-skip-tls-verify"):
        kubeconfig.written(found, "red", "config")
