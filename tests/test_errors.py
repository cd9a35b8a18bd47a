"""Errors tell what helps and keep what is secret."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.not_ready import NotReady, Report
from k8s_cr_driver.errors import ApiError, TransportError, passes
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.redaction import DETAIL_LIMIT, capped, redact, words

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
    ],
)
def test_what_looks_like_a_credential_is_left_out(text: str) -> None:
    assert "canary" in text
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


def test_a_detail_is_cut_in_bytes_and_says_so() -> None:
    text = "€" * DETAIL_LIMIT
    cut = capped(text)
    assert len(cut.encode()) <= DETAIL_LIMIT
    assert cut.startswith("€€") and cut.endswith("conductor's log)")
    assert capped("short") == "short"


@pytest.mark.parametrize("status, expected", [(429, True), (500, True), (503, True), (404, False), (409, False), (422, False)])
def test_which_errors_pass_by_themselves(status: int, expected: bool) -> None:
    assert passes(ApiError("GET /", status, "", "")) is expected


def test_no_answer_passes_and_a_bug_does_not() -> None:
    assert passes(TransportError("reset"))
    assert not passes(ValueError("bug"))


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


def test_a_report_reads_like_a_sentence() -> None:
    key = ObjectKey("apps", "Deployment", "blue", "web")
    report = Report(key, "Waiting", "ImagePullBackOff", "no such image", "2026-01-01T00:00:00Z", ("Failed: pull",))
    assert str(report) == (
        "Deployment.apps blue/web: Waiting (ImagePullBackOff): no such image [since 2026-01-01T00:00:00Z]; event: Failed: pull"
    )
    assert str(NotReady("1 of 1 objects late:", [report])).splitlines() == ["1 of 1 objects late:", str(report)]
