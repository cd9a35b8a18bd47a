"""
vimConnectionInfo.accessInfo -> the Authorization header: a bearer token, user name and password, or OpenID Connect.

The keys are those of Tacker's own driver. An ID token is fetched with the password grant when the first request needs
one, kept in memory only, and fetched anew before it expires or when the API server does not take it any more.
"""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode

import urllib3
from kubernetes.client.rest import ApiException

from k8s_cr_driver import tls
from k8s_cr_driver.errors import ConnectionFailed, DriverError, InvalidRequest, TransportError, words

Answer = TypeVar("Answer")

ANSWER_WITHIN = urllib3.Timeout(connect=10, read=20)
ANSWER_LIMIT = 1024 * 1024
REFRESH_BEFORE = 10.0
"""Seconds before its expiry at which a token is not used any more; half its lifetime, if that is less."""

REFUSED_GRACE = 30.0
"""Seconds for which an API server that has accepted a login may refuse it: one that starts is not ready to check all of
them, nor has it asked a provider for its keys (kubernetes/kubernetes#65785)."""

_REMEDIES = {
    "invalid_client": "check client_id and client_secret",
    "invalid_grant": "check username and password",
    "unauthorized_client": "let the provider allow the password grant for this client_id",
    "unsupported_grant_type": "let the provider allow the password grant",
    "invalid_scope": "let the provider allow the scope openid for this client_id",
}
"""What to do about the errors of RFC 6749, section 5.2; other words of a provider may repeat what it was sent."""


def http_url(value: Any, where: str) -> str:
    """`value` if it is an http(s) URL without credentials, which every error would show; else InvalidRequest."""
    text = str(value or "")
    if "@" in text:
        raise InvalidRequest(f"vimConnectionInfo.{where}: holds credentials, or an @; give them as keys of accessInfo")
    try:
        url = urllib3.util.parse_url(text)
    except urllib3.exceptions.LocationParseError:
        url = urllib3.util.Url()
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest(f"vimConnectionInfo.{where}: {text!r} is not an http(s) URL, such as https://10.0.0.1:6443")
    return text


def authorization(access: Mapping[str, str]) -> str:
    """The header for a bearer token, which is preferred, or for a user name and password; else ""."""
    if token := str(access.get("bearer_token") or "").strip():
        if not _is_token(token):
            raise InvalidRequest("vimConnectionInfo.accessInfo.bearer_token: holds a character that no token has")
        return f"Bearer {token}"
    if access.get("username") and access.get("password") is not None:
        pair = f"{access['username']}:{access['password']}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    return ""


@dataclass(frozen=True)
class Provider:
    """An OpenID Connect provider's token endpoint, and who asks it; secrets are kept out of `repr`."""

    token_url: str
    client_id: str
    username: str
    password: str = field(repr=False)
    client_secret: str = field(default="", repr=False)

    @classmethod
    def from_access(cls, access: Mapping[str, str]) -> Provider | None:
        """None if accessInfo has no oidc_token_url."""
        if not access.get("oidc_token_url"):
            return None
        missing = [key for key in ("client_id", "username", "password") if not access.get(key)]
        if missing:
            raise InvalidRequest(f"vimConnectionInfo.accessInfo: oidc_token_url needs {' and '.join(missing)} beside it")
        return cls(
            http_url(access["oidc_token_url"], "accessInfo.oidc_token_url"),
            str(access["client_id"]),
            str(access["username"]),
            str(access["password"]),
            str(access.get("client_secret") or ""),
        )


class Acceptance:
    """Whether a login was accepted before it is refused (401); for many threads."""

    def __init__(self) -> None:
        self._accepted, self._refused_since = False, math.inf

    def accepted(self) -> None:
        self._accepted, self._refused_since = True, math.inf

    def refused(self, attempt: str, told: str, remedy: str) -> DriverError:
        """TransportError while the refusal may pass, else ConnectionFailed."""
        now = time.monotonic()
        self._refused_since = min(self._refused_since, now)
        if self._accepted and now - self._refused_since < REFUSED_GRACE:
            return TransportError(f"{attempt}: {told}")
        return ConnectionFailed(f"{told}. {remedy}")


class Tokens:
    """The ID tokens of one login, for many threads: one of them asks the provider, the others share what came of it."""

    def __init__(self, provider: Provider, *, ca: str, verify: bool) -> None:
        self._provider = provider
        self._tls = tls.context(provider.token_url, ca=ca, verify=verify)
        self._lock = threading.Lock()
        self._token, self._until = "", -math.inf
        self._failed, self._failure = -math.inf, DriverError("")

    def lend(self, send: Callable[[str], Answer]) -> Answer:
        """`send(Authorization header)`, once more with a new token if the API server does not take the first (401)."""
        token = self._current()
        try:
            return send(f"Bearer {token}")
        except ApiException as error:
            if error.status != 401:
                raise
            return send(f"Bearer {self._current(refused=token)}")

    def refusal(self, url: str) -> tuple[str, str]:
        """What it means that the API server at `url` does not take a new token either, and what to do about it."""
        return (
            f"{url} does not accept the ID token of {self._provider.token_url} (401)",
            "The API server must trust that provider and this client_id (its options --oidc-issuer-url and --oidc-client-id).",
        )

    def _current(self, refused: str = "") -> str:
        """A token that is not `refused`. ConnectionFailed: the provider says no; TransportError: it may later say yes."""
        asked = time.monotonic()
        with self._lock:
            if self._failed >= asked:
                raise self._failure
            if not self._token or self._token == refused or time.monotonic() >= self._until:
                self._fetch()
            return self._token

    def _fetch(self) -> None:
        began = time.monotonic()
        try:
            self._token = self._answered(self._ask())
        except DriverError as failure:
            self._failed, self._failure = time.monotonic(), failure
            raise
        lifetime = _lifetime(self._token)
        self._until = began + lifetime - min(REFRESH_BEFORE, lifetime / 2)

    def _ask(self) -> tuple[int, bytes]:
        who = self._provider
        form = {
            "grant_type": "password",
            "scope": "openid",
            "client_id": who.client_id,
            "username": who.username,
            "password": who.password,
            **({"client_secret": who.client_secret} if who.client_secret else {}),
        }
        try:
            with urllib3.PoolManager(ssl_context=self._tls, timeout=ANSWER_WITHIN) as http:
                response = http.request(
                    "POST",
                    who.token_url,
                    body=urlencode(form),
                    headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
                    redirect=False,  # the password is for this URL
                    retries=False,
                    preload_content=False,
                )
                content = response.read(ANSWER_LIMIT)
                response.close()
        except urllib3.exceptions.SSLError as error:
            raise tls.failure(who.token_url, str(error)) from None
        except urllib3.exceptions.HTTPError as error:
            raise TransportError(f"POST {who.token_url}: {words(error)}") from None
        return response.status, content

    def _answered(self, answer: tuple[int, bytes]) -> str:
        status, content = answer
        url = self._provider.token_url
        if status == 429 or status >= 500:
            raise TransportError(f"POST {url}: the OpenID Connect provider answers {status}")
        try:
            told = json.loads(content)
        except ValueError:
            told = None
        told = told if isinstance(told, dict) else {}
        if status != 200:
            known = _REMEDIES.get(str(told.get("error")))
            said = f"{status} {told['error']}" if known else str(status)
            remedy = known or "check oidc_token_url"
            raise ConnectionFailed(
                f"The OpenID Connect provider {url} gives no token ({said}): {remedy} in vimConnectionInfo.accessInfo."
            )
        token = told.get("id_token")
        if not (isinstance(token, str) and token and _is_token(token)):
            raise ConnectionFailed(
                f"The answer of {url} has no id_token: check that vimConnectionInfo.accessInfo.oidc_token_url is the token "
                "endpoint of an OpenID Connect provider that allows the scope openid for this client_id."
            )
        return token


def _is_token(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _lifetime(token: str) -> float:
    """Seconds from an ID token's issue to its expiry, which no difference of clocks spoils; infinite if it has none."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"]) - float(claims["iat"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return math.inf
