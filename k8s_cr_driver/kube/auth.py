# SPDX-License-Identifier: Apache-2.0
"""How a connection authenticates: ID tokens of an OpenID Connect provider, and what a refused credential (401) means.

The first request that needs an ID token requests it with the password grant. The token is kept in memory only. It is
requested again before it expires, and when the API server no longer accepts it.
"""

from __future__ import annotations

import base64
import functools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from k8s_cr_driver.errors import Concern, ConnectionFailed, DriverError, TransportError
from k8s_cr_driver.kube import once, tls
from k8s_cr_driver.kube.bounded import Response
from k8s_cr_driver.kube.pools import Judge
from k8s_cr_driver.objects.decoding import decoded

CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 20.0

REFRESH_BEFORE = 10.0
"""Seconds before its expiry at which a token is not used any more; half its lifetime, if that is less."""

REFUSED_GRACE = 30.0
"""Seconds for which an API server that has accepted credentials may refuse them: one that starts cannot check all kinds of
them yet, nor has it read a provider's keys (kubernetes/kubernetes#65785)."""

_REMEDIES = {
    "invalid_client": "check client_id and client_secret",
    "invalid_grant": "check username and password",
    "unauthorized_client": "let the provider allow the password grant for this client_id",
    "unsupported_grant_type": "let the provider allow the password grant",
    "invalid_scope": "let the provider allow the scope openid for this client_id",
}
"""Remedies for the errors of RFC 6749, section 5.2; other text of a provider may repeat what was sent to it."""


@dataclass(frozen=True)
class Provider:
    """An OpenID Connect provider's token endpoint, and who asks it; secrets are kept out of `repr`."""

    token_url: str
    client_id: str
    username: str
    password: str = field(repr=False)
    client_secret: str = field(default="", repr=False)


class Acceptance:
    """Whether the server has accepted the credentials before it refuses them (401). For many threads."""

    def __init__(self) -> None:
        self._accepted, self._refused_since = False, math.inf

    def accepted(self) -> None:
        self._accepted, self._refused_since = True, math.inf

    def refused(self, attempt: str, refusal: ConnectionFailed) -> DriverError:
        """TransportError while the refusal may pass, else `refusal`."""
        now = time.monotonic()
        self._refused_since = min(self._refused_since, now)
        if self._accepted and now - self._refused_since < REFUSED_GRACE:
            return TransportError(f"{attempt}: {refusal}")
        return refusal


class Tokens:
    """The ID tokens of one account. For many threads: one of them asks the provider, the others share its result."""

    def __init__(self, provider: Provider, *, ca: str, verify: bool, judge: Judge) -> None:
        self._provider, self._way = provider, once.Way(judge, tls.context(provider.token_url, ca=ca, verify=verify))
        self._lock = threading.Lock()
        self._token, self._until = "", -math.inf
        self._failed, self._failure = -math.inf, DriverError("")

    def lend(self, send: Callable[[str], Response], within: float = math.inf) -> Response:
        """Calls `send(Authorization header)`, once more with a new token if the API server refuses the first (401).

        A token is waited for at most `within` seconds.
        """
        token = self._current(within)
        response = send(f"Bearer {token}")
        return response if response.status != 401 else send(f"Bearer {self._current(within, refused=token)}")

    def refusal(self, url: str) -> ConnectionFailed:
        """The error when the API server at `url` refuses a new token too."""
        return ConnectionFailed(
            f"{url} does not accept the ID token of {self._provider.token_url} (401). The API server must trust that provider "
            "and this client_id (its options --oidc-issuer-url and --oidc-client-id)."
        )

    def _current(self, within: float, refused: str = "") -> str:
        """A token that is not `refused`. ConnectionFailed: the provider refuses; TransportError: it may accept later."""
        asked = time.monotonic()
        if not self._lock.acquire(timeout=min(within, threading.TIMEOUT_MAX)):
            raise TransportError(f"POST {self._provider.token_url}: another thread still waits for a response")
        try:
            if self._failed >= asked:
                raise self._failure
            if not self._token or self._token == refused or time.monotonic() >= self._until:
                self._fetch(within)
            return self._token
        finally:
            self._lock.release()

    def _fetch(self, within: float) -> None:
        began = time.monotonic()
        try:
            self._token = self._token_of(self._request(within))
        except DriverError as failure:
            self._failed, self._failure = time.monotonic(), failure
            raise
        lifetime = _lifetime(self._token)
        self._until = began + lifetime - min(REFRESH_BEFORE, lifetime / 2)

    def _request(self, within: float) -> Response:
        who = self._provider
        form = {
            "grant_type": "password",
            "scope": "openid",
            "client_id": who.client_id,
            "username": who.username,
            "password": who.password,
            **({"client_secret": who.client_secret} if who.client_secret else {}),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        return self._way.send(
            "POST",
            who.token_url,
            headers=headers,
            body=urlencode(form),
            connect=CONNECT_TIMEOUT,
            within=min(READ_TIMEOUT, within),
        )

    def _token_of(self, response: Response) -> str:
        status, url = response.status, self._provider.token_url
        if status == 429 or status >= 500:
            raise TransportError(f"POST {url}: the OpenID Connect provider responds with {status}")
        try:
            body = decoded(response.data)
        except ValueError:
            body = None
        body = body if isinstance(body, dict) else {}
        if status != 200:
            known = _REMEDIES.get(str(body.get("error")))
            reason = f"{status} {body['error']}" if known else str(status)
            raise ConnectionFailed(
                f"The OpenID Connect provider {url} gives no token ({reason}): {known or 'check oidc_token_url'}.", Concern.OIDC
            )
        token = body.get("id_token")
        if not (isinstance(token, str) and token and is_token(token)):
            raise ConnectionFailed(
                f"The response of {url} has no id_token: check that oidc_token_url is the token endpoint of an OpenID Connect "
                "provider that allows the scope openid for this client_id.",
                Concern.OIDC,
            )
        return token


@functools.lru_cache(maxsize=128)
def tokens(provider: Provider, ca: str, verify: bool, judge: Judge) -> Tokens:
    """The tokens of an account, which all connections of this process share."""
    return Tokens(provider, ca=ca, verify=verify, judge=judge)


def is_token(text: str) -> bool:
    """Whether `text` can stand in an HTTP header as a token."""
    return text.isascii() and text.isprintable()


def _lifetime(token: str) -> float:
    """Seconds from an ID token's issue to its expiry, which do not depend on clocks; infinite if it does not expire."""
    try:
        payload = token.split(".")[1]
        claims = decoded(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"]) - float(claims["iat"])
    except (ValueError, LookupError, TypeError, OverflowError):
        return math.inf
