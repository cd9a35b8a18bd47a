"""Removes what looks like a credential from foreign text, and caps its length.

Every text that others wrote (API server, controllers, packages) passes here before it can reach a log or ProblemDetails.
"""

from __future__ import annotations

import re

DETAIL_LIMIT = 8 * 1024
"""Bytes of a ProblemDetails' detail: it is stored, logged and sent to every subscriber."""

_SECRETS = [
    (re.compile(r"-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)", re.S), "[PEM removed]"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 [removed]"),
    (
        re.compile(
            r"(?i)((?:passw|token|secret|credential|apikey|privatekey)[\w.\[\]-]*: "
            r"(?:(?:invalid|duplicate|unsupported) value|not found): )"
            r'("(?:[^"\\]|\\.)*"|\S+)'
        ),
        r"\1[removed]",
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+"), "[token removed]"),
    (
        re.compile(
            r"(?i)(\"?\b(?:password|passwd|token|secret|client-key-data|client-certificate-data|"
            r"certificate-authority-data|bearer_token|client_secret)\b\"?\s*[:=]\s*)"
            # A field of such a name may be what an error is about, ours or the API server's (field.ErrorType), which has lost
            # its value by now: "data.password: is not base64", "spec.token: Required value".
            r"(?!(?:is|its|must|does|cannot|expected|holds|leads|has|fits|unknown field,|another entry|only paths|the package|"
            r"(?:invalid|required|unsupported|duplicate) value|not found|forbidden|too long|too many)(?:[\s:]|$))"
            r"(\"[^\"]*\"|[^\s,;}\]]+)"
        ),
        r"\1[removed]",
    ),
    (re.compile(r"[A-Za-z0-9+/]{120,}={0,2}"), "[long value removed]"),
    (re.compile(r"(valueUnstructured\{Value:)[^}]*"), r"\1[removed]"),
]


def redact(text: str) -> str:
    """`text` without what looks like a credential: PEM blocks, bearer tokens, JWTs, `password: ...`, long base64."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def words(error: BaseException) -> str:
    """An exception in a few words, without the addresses of objects that urllib3 prints."""
    text = re.sub(r"<[^>]*>:?\s*|\w+\(host=[^)]*\):?\s*", "", str(error))
    return re.sub(r"^\((.*)\)$", r"\1", text).strip(" '\"") or type(error).__name__


def capped(text: str, limit: int = DETAIL_LIMIT) -> str:
    """`text` in at most `limit` bytes of UTF-8, with a note at its end if it was cut."""
    data = text.encode()
    if len(data) <= limit:
        return text
    tail = "\n... (cut; the whole report is in the conductor's log)"
    return data[: limit - len(tail)].decode(errors="ignore") + tail
