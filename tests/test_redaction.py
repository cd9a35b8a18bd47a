# SPDX-License-Identifier: Apache-2.0
"""Foreign texts keep what helps and lose what is secret, in linear time."""

from __future__ import annotations

import html
import time
from collections.abc import Callable

import pytest

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.redaction import DETAIL_LIMIT, FOREIGN_LIMIT, capped, foreign, lines, own_words, redact, words
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.write_errors import explained
from tests.hostile import assert_harmless
from tests.instance import BLUE, config_map

PEM = "-----BEGIN CERTIFICATE-----\nMIIBcanary\n-----END CERTIFICATE-----"


@pytest.mark.parametrize(
    "text",
    [
        f"the certificate {PEM} is wrong",
        "the key -----BEGIN RSA PRIVATE KEY-----\ncanary-cut-short",
        "Authorization: Bearer canary.abcdefgh",
        "basic Y2FuYXJ5OmNhbmFyeQ==canary",
        "token eyJhbGciOiJSUzI1NiJ9.canary.sig",
        '{"password": "canary"}',
        "password=canary, retry",
        "client_secret: canary",
        f"unexpected data canary{'A' * 140}",
        ".spec.size: expected string, got &value.valueUnstructured{Value:canary}",
        'spec.token: Invalid value: "canary": must be short',
        'data.password: Not found: "canary"',
        "password: is-canary",
        "DB_PASSWORD=canary",
        "adminPassword=canary, no",
        "clientSecret: canary",
        "api_key: canary",
        "passphrase: canary",
        "cannot reach postgres://user:canary@host/db",
        'spec.pin: Invalid value: "canary": must be short',
        'spec.mode: Unsupported value: "canary": supported values: "a", "b"',
        'spec.users: Invalid value: {"name":"a}","password":"canary"}: must be unique',
        "spec.a: Invalid value: map[string]interface {}{\"a\":\"canary\"}: no",
        ".spec.size: expected numeric (int or float), got &{map[a:canary b:[1 2]]}",
        "spec.pin: Invalid value: canary: must be a number",
        'admission webhook "w" denied the request: spec.pin: Invalid value: canary (must have 12 characters)',
        "spec.pin: expected string, got canary here",
        'spec.a: Invalid value: "canary that is never closed',
        "spec.a: Invalid value: {[canary that is never closed",
        "spec.pin: Invalid value: 73625194canary",
        r'denied: {"password":"a\"b canary"}',
        r'{\"password\":\"a canary\"}',
        "password='a and canary'",
        "X-Auth-Token: 'a canary'",
        '"password": ["a","canary"]',
        "passwords: [a b canary]",
        "secret: map[a:b c:[d canary]]",
        "PGPASSWORD=a;canary",
        "PGPASSWORD=a,canary",
        "exec: mysql --password canary -h db",
        "exec: mysql --db-password canary",
        'args ["--password","canary"]',
        "mongodb://user:p@ss/canary@host",
        "postgres://user:a/canary@host/db",
        "redis://:a:canary@host",
        "password: not found canary",
        "password: expected canary",
        "password: forbidden.canary",
        "password: Forbidden canary",
        "password: required value canary",
    ],
)
@pytest.mark.parametrize(
    "written",
    [
        str,
        html.escape,
        lambda text: html.escape(html.escape(text)),
        lambda text: "".join(f"&#{ord(one)};" for one in text),
        lambda text: "".join(one if one.isalnum() else f"&#x{ord(one):X};" for one in text),
    ],
    ids=["plain", "HTML", "HTML twice", "decimal", "hexadecimal"],
)
def test_values_and_credentials_of_foreign_texts_are_removed(text: str, written: Callable[[str], str]) -> None:
    assert "canary" in text
    text = written(text)
    assert "canary" not in foreign(text)
    assert "canary" not in str(ApiError("PATCH /x", 422, "Invalid", text))


@pytest.mark.parametrize(
    "text",
    [
        f"the certificate {PEM} is wrong",
        "Authorization: Bearer canary.abcdefgh",
        "token eyJhbGciOiJSUzI1NiJ9.canary.sig",
        f"unexpected data canary{'A' * 140}",
    ],
)
def test_credentials_are_removed_from_every_text(text: str) -> None:
    assert "canary" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        'configmaps "tokens" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "configmaps"',
        "spec.template.spec.containers[0].image: Required value",
        "field is immutable",
        "../etc/passwd: leads out of the package; name a path below the package's root",
        "file:///etc/passwd: only paths inside the package are allowed",
        "vimConnectionInfo.accessInfo.bearer_token: holds a character that no token has",
        "additionalParams.parameters.TOKEN: the package declares no such parameter",
        "CronTab default/a: spec.password: unknown field, which the API server would drop",
        "spec.token: Required value",
        "spec.password: Too long: may not be more than 8 bytes",
    ],
)
def test_what_helps_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        'ConfigMap "Upper" is invalid: metadata.name: Invalid value: "Upper": a lowercase RFC 1123 subdomain must be short',
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"',
        'spec.size: Invalid value: [value removed]: spec.size in body must be of type integer: "string"',
        "spec.token: Required value",
        "spec.password: Too long: may not be more than 8 bytes",
        "[spec.password: Required value, spec.secret: Forbidden: may not be set]",
        'configmaps "tokens" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "configmaps"',
    ],
)
def test_what_helps_stays_in_foreign_texts(text: str) -> None:
    assert foreign(text) == text


def test_an_escape_of_html_hides_no_control_character() -> None:
    assert_harmless(foreign("a text with &#27;[2J and&#10;FORGED &amp;#10;FORGED &#x202e; &NewLine;FORGED"))


def test_what_is_no_escape_stays() -> None:
    text = "GET https://a.example.com/?a=1&copy=2&amp=3 failed: R&D; a & b"
    assert foreign(text) == text


def test_a_foreign_text_is_one_line_of_limited_length() -> None:
    assert foreign("one\ntwo\x1b[31m\u2028three") == "one two\\x1b[31m three"
    assert len(foreign("a " * FOREIGN_LIMIT)) < FOREIGN_LIMIT + 20


def test_control_characters_are_escaped_in_every_text() -> None:
    assert redact("a\x1b[2J\x9b\u202eb\r\n\tc") == "a\\x1b[2J\\x9b\\u202eb\\x0d\\n\tc"
    assert redact(lines(["a\x1b", "b\nc"])) == "a\\x1b\nb\\nc"
    assert redact("\u200f\ud800\ufeff") == "\\u200f\\ud800\\ufeff"


@pytest.mark.parametrize(
    "part",
    [
        "-----BEGIN A-----",
        "-----BEGIN ",
        "bearer  ",
        "-eyJ",
        "token",
        "token=",
        'password:"',
        "password:'",
        "password:[",
        'password:\\\\"',
        "password: expected ",
        "--password ",
        "--a",
        "://a:",
        "Invalid value: {",
        'Invalid value: "',
        'Invalid value: {"\\',
        '"\\',
        "(host=",
        "<",
        "a",
        "\x1b",
    ],
)
def test_hostile_texts_take_linear_time(part: str) -> None:
    """Quadratic time would be minutes."""
    text = part * (1_000_000 // len(part))
    began = time.process_time()
    foreign(text), redact(text), words(ValueError(text)), own_words(text)
    assert time.process_time() - began < 2


def test_an_immutable_field_is_looked_for_in_linear_time() -> None:
    error = ApiError("PATCH /x", 422, "Invalid", "update to " * FOREIGN_LIMIT)
    began = time.process_time()
    for _ in range(10):
        explained(error, resource_for(config_map("a")), BLUE)
    assert time.process_time() - began < 2


def test_a_detail_is_cut_in_bytes_and_says_so() -> None:
    text = "€" * DETAIL_LIMIT
    cut = capped(text)
    assert len(cut.encode()) <= DETAIL_LIMIT
    assert cut.startswith("€€") and cut.endswith("conductor's log)")
    assert capped("short") == "short"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("('Connection aborted.', ResetError(104, 'reset'))", "Connection aborted.', ResetError(104, 'reset')"),
        (
            "HTTPSConnection(host='a', port=1): Failed to resolve 'a' ([Errno -2] No such name)",
            "Failed to resolve 'a' ([Errno -2] No such name)",
        ),
        ("", "ValueError"),
    ],
)
def test_an_exception_in_a_few_words(text: str, expected: str) -> None:
    assert words(ValueError(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        'denied the request: password "canary" is too weak',
        'the credential "canary" is reserved',
        'error found in #10 byte of ...|"a":"canary"}|..., bigger context ...|{"a":"canary"}|...',
        '.spec.pw: expected numeric (int or float), got string "canary"',
        'parsing time "canary" as "2006-01-02": cannot parse "canary" as "2006"',
        'quantity "canary" must match',
        "connect redis://canary@host",
        "env MYSQL_PWD=canary",
        "ansible_ssh_pass=canary",
        "community: canary",
        "psk: canary",
        "pin: canary",
        "pwd: canary",
    ],
)
def test_what_servers_and_programs_quote_is_removed(text: str) -> None:
    assert "canary" not in foreign(text)


@pytest.mark.parametrize(("text", "said"), [
    ('a "immutable" is invalid: spec.b: Unsupported value: "immutable": supported values: "c"',
     'a "" is invalid: spec.b: Unsupported value: : supported values: ""'),
    ('a: Invalid value: core.Spec{A:"immutable", B:[]string{"x"}}: is immutable', "a: Invalid value: : is immutable"),
    ('namespaces "immutable" not found', 'namespaces "" not found'),
])  # fmt: skip
def test_the_own_words_of_a_refusal_are_without_values_and_names(text: str, said: str) -> None:
    assert own_words(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "spec: Invalid value: a and b are mutually exclusive",
        '"one" is invalid: [spec.entries: Invalid value: at most two entries please, spec.a: Required value]',
        "spec: Invalid value: objrule is immutable",
        "spec: Invalid value: immutable",
    ],
)
def test_the_message_of_a_rule_without_a_value_is_shown_whole(text: str) -> None:
    """As the API server's own validation has it; others may write values there."""
    assert foreign(text, of_validation=True) == text
    assert foreign(text) != text


def test_what_the_api_server_says_of_a_conversion_webhook_is_shown() -> None:
    said = "conversion webhook for stable.example.com/v1, Kind=CronTab failed: the server could not find the requested resource"
    assert foreign(said) == said
    assert "swordfish" not in foreign(f"{said} swordfish")


@pytest.mark.parametrize(
    "text",
    [
        "conversion webhook for x failed: spec.phrase: Invalid value: swordfish is too weak",
        "conversion webhook for stable.example.com/v1, Kind=CronTab failed: default/one: cannot convert swordfish",
        'admission webhook "w" denied the request: spec.phrase: Invalid value: swordfish is too weak',
        "spec.phrase: Invalid value: swordfish battery: too weak",
    ],
)
def test_a_value_in_the_words_of_a_webhook_is_removed(text: str) -> None:
    assert "swordfish" not in foreign(text, of_validation=True)
