"""
How a connection authenticates: ID tokens of an OpenID Connect provider, and what a refused credential (401) means.

An ID token is requested with the password grant when the first request needs one. It is kept in memory only, and
requested again before it expires or when the API server no longer accepts it.
"""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlencode

import urllib3
from kubernetes.client.rest import ApiException

from k8s_cr_driver.errors import ConnectionFailed, DriverError, TransportError
from k8s_cr_driver.kube import tls
from k8s_cr_driver.redaction import words

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


@dataclass(frozen=True)
class Provider:
    """An OpenID Connect provider's token endpoint, and who asks it; secrets are kept out of `repr`."""

    token_url: str
    client_id: str
    username: str
    password: str = field(repr=False)
    client_secret: str = field(default="", repr=False)


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
        if not (isinstance(token, str) and token and is_token(token)):
            raise ConnectionFailed(
                f"The answer of {url} has no id_token: check that vimConnectionInfo.accessInfo.oidc_token_url is the token "
                "endpoint of an OpenID Connect provider that allows the scope openid for this client_id."
            )
        return token


def is_token(text: str) -> bool:
    """Whether `text` can stand in an HTTP header as a token."""
    return text.isascii() and text.isprintable()


def _lifetime(token: str) -> float:
    """Seconds from an ID token's issue to its expiry, which no difference of clocks spoils; infinite if it has none."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"]) - float(claims["iat"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return math.inf
