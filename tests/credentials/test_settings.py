# SPDX-License-Identifier: Apache-2.0
"""The settings of the sender: what is wrong in them is reported, and what a request may change."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml

from k8s_cr_driver.credentials import settings
from k8s_cr_driver.credentials.settings import Source
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from tests.fake_api.tls import server_certificate

KEY, TOKEN = ({"secret": f"red/receiver/{key}"} for key in ("key", "token"))
RIGHT: dict[str, Any] = {"url": "https://a.example.com/", "hmac-key": KEY}
PEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----"


def problems(**changes: Any) -> list[str]:
    return settings.problems(yaml.safe_dump({**RIGHT, **changes}), "s.yaml")


def test_right_settings_have_no_problem_and_defaults() -> None:
    assert problems() == []
    loaded = settings.load(yaml.safe_dump(RIGHT), "s.yaml")
    assert loaded.sources == {"hmac-key": Source(secret="red/receiver/key")}
    assert (loaded.deadline, loaded.retries, loaded.on_failure, loaded.resend) == (120, 100, "fail", False)


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"url": "http://a.example.com/"}, "url must be https; http sends kubeconfigs in clear text"),
        ({"url": "HTTP://a.example.com/"}, "url must be https; http sends kubeconfigs in clear text"),
        ({"url": "a.example.com"}, "url must be a URL, such as"),
        ({"url": "https://a:99999999/"}, "url must be a URL"),
        ({"url": "https://me:word@a.example.com"}, "url must not hold credentials"),
        ({"url": 1}, "url must be a URL"),
        ({"ca-bundle": "/etc/ca.pem"}, "ca-bundle must be certificates as PEM"),
        ({"bearer-token": "abc"}, "bearer-token must have secret: the place"),
        ({"bearer-token": {"file": "/etc/token"}}, "bearer-token names a file on the conductor's host, which only"),
        ({"hmac-key": {"file": "/etc/key"}}, "hmac-key names a file on the conductor's host, which only the operator may"),
        ({"receiver": "mine"}, "url stands beside receiver, whose URL and secrets are the operator's"),
        ({"bearer-token": {"secret": "name"}}, "bearer-token must have as secret NAMESPACE/NAME/KEY"),
        ({"bearer-token": {"file": "/a", "secret": "a/b/c"}}, "bearer-token names a file on the conductor's host"),
        ({"client-certificate": KEY}, "client-certificate and client-key belong together"),
        ({"deadline": 0}, "deadline must be an integer from 1 to 3600"),
        ({"retries": True}, "retries must be an integer from 0 to 100"),
        ({"resend": "yes"}, "resend must be true or false"),
        ({"on-failure": "ignore"}, "on-failure must be fail or warn"),
        ({"retrys": 3}, "retrys is not a setting; is it retries?"),
    ],
)
def test_a_mistake_is_named_with_its_setting(changes: dict[str, Any], problem: str) -> None:
    [found] = problems(**changes)
    assert found.startswith(f"s.yaml: {problem}")
    with pytest.raises(InvalidPackage, match=r"s\.yaml: "):
        settings.load(yaml.safe_dump({**RIGHT, **changes}), "s.yaml")


def test_a_file_that_is_no_mapping_of_each_key_once_is_a_mistake() -> None:
    assert settings.problems("- a", "s.yaml") == ["s.yaml: must be a mapping, not a list"]
    assert settings.problems("url: a\n\tresend: b", "s.yaml") == ["s.yaml: it is not YAML in line 2"]
    assert settings.problems("url: a\nurl: b", "s.yaml") == ["s.yaml: url: is written more than once; remove the others"]
    assert "s.yaml: hmac-key is missing" in settings.problems("url: https://a.example.com", "s.yaml")[0]


@pytest.mark.parametrize("name", ["a" * 64, "Mine", "a/b", "mine-", 1, ""])
def test_a_receiver_is_named_as_a_group_of_tacker_conf_can_be(name: object) -> None:
    [problem] = settings.problems(yaml.safe_dump({"receiver": name}), "s.yaml")
    assert problem.startswith("s.yaml: receiver must be the name of a receiver")


def test_a_receiver_of_the_operator_needs_its_name_alone_in_the_package_or_in_the_request() -> None:
    assert settings.problems("receiver: mine", "s.yaml") == settings.problems("{}", "s.yaml") == []
    assert settings.load("receiver: mine", "s.yaml") == settings.load("{}", "s.yaml", {"receiver": "mine"})


def test_a_receiver_and_a_url_replace_each_other() -> None:
    """Nothing that is the package's own goes with the operator's receiver, also not of packages of an earlier driver."""
    text = yaml.safe_dump({**RIGHT, "bearer-token": {"file": "/etc/token"}, "deadline": 5})
    loaded = settings.load(text, "s.yaml", {"receiver": "mine"})
    assert loaded == settings.Settings(receiver="mine", deadline=5)


def test_http_needs_a_word_of_the_author() -> None:
    assert problems(url="http://a.example.com/", **{"allow-insecure": True}) == []


def test_a_request_can_give_the_url_and_override_what_is_not_secret() -> None:
    text = yaml.safe_dump({"hmac-key": KEY})
    assert settings.problems(text, "s.yaml") == []
    loaded = settings.load(text, "s.yaml", {"url": "https://b.example.com", "deadline": 5, "ca-bundle": PEM})
    assert (loaded.url, loaded.deadline, loaded.ca_bundle) == ("https://b.example.com", 5, PEM)


@pytest.mark.parametrize("body", ["... of the CA that has signed server.crt", "MA=="])
def test_a_ca_that_is_no_certificate_is_a_mistake_of_the_author_and_not_of_an_instance(body: str) -> None:
    damaged = f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"
    assert problems(**{"ca-bundle": damaged}) == [
        "s.yaml: ca-bundle is damaged, or is no certificate: copy the CA's whole PEM file"
    ]
    assert settings.load(yaml.safe_dump({**RIGHT, "ca-bundle": damaged}), "s.yaml").ca_bundle == damaged


def test_a_ca_is_a_mistake_once_none_is_valid_any_more() -> None:
    expired, valid = (server_certificate(lasts=timedelta(minutes=minutes))[1] for minutes in (30, 90))
    [problem] = problems(**{"ca-bundle": expired})
    assert "ca-bundle has no CA that is still valid: the last one has expired on " in problem
    assert problems(**{"ca-bundle": expired + valid}) == []


ALLOWING, WITH_TOKEN = {**RIGHT, "allow-insecure": True}, {**RIGHT, "bearer-token": TOKEN}


@pytest.mark.parametrize(
    ("content", "given", "problem"),
    [
        ({"receiver": "mine"}, {"url": "https://b.example.com"}, "hmac-key is missing: a URL of a package's own needs"),
        ({}, {"url": "https://b.example.com", "receiver": "mine"}, "url stands beside receiver"),
        ({}, {}, "url is missing, and so is receiver"),
        ({"hmac-key": KEY}, {}, "url is missing"),
        ({"hmac-key": KEY}, {"url": "https://b.example.com", "deadline": "soon"}, "deadline must be"),
        (WITH_TOKEN, {"url": "https://a.example.com:444/"}, "url is on another server"),
        ({"hmac-key": KEY, "bearer-token": TOKEN}, {"url": "https://b.example.com/"}, "url must be in the package too"),
        (RIGHT, {"url": "http://a.example.com/", "allow-insecure": True}, "allow-insecure can be set by the package only"),
        (RIGHT, {"url": "http://a.example.com/"}, "url must be https"),
    ],
)
def test_what_a_request_cannot_say(content: dict[str, Any], given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=f"additionalParams.credential-sender: {problem}"):
        settings.load(yaml.safe_dump(content), "s.yaml", given)


def test_a_request_may_change_the_path_with_a_bearer_token_and_use_http_that_the_package_allows() -> None:
    for content, url in ((WITH_TOKEN, "https://a.example.com:443/other"), (ALLOWING, "http://a.example.com/")):
        assert settings.load(yaml.safe_dump(content), "s.yaml", {"url": url}).url == url
