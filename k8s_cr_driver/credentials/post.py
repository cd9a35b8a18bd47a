# SPDX-License-Identifier: Apache-2.0
"""Sends a signed message to a URL until it is accepted, refused, or the time is over.

Repeats an attempt after a failed connection, 429 and 5xx (RFC 9110, 15.6), which may pass. Follows a redirect that keeps the
method (307, 308) on the same server only: another one may not be meant for the token and the kubeconfig.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin

import urllib3

from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.credentials.secrets import Secrets
from k8s_cr_driver.credentials.settings import Settings, origin
from k8s_cr_driver.errors import DriverError, InvalidRequest
from k8s_cr_driver.kube import backoff, pools, tls
from k8s_cr_driver.kube.refusals import retry_after
from k8s_cr_driver.redaction import words

ATTEMPT = 30.0
"""Seconds at most for one attempt's connection, and for each part of its response."""
REDIRECTS = 3


class NotDelivered(DriverError):
    """The receiver has not accepted a message. The text names the URL, the status and the cluster."""

    title = "Credentials were not delivered"

    def __init__(self, message: str, *, may_have_arrived: bool = False) -> None:
        """`may_have_arrived`: the receiver may have the message although no response says so."""
        super().__init__(message)
        self.may_have_arrived = may_have_arrived


class _Failed(Exception):
    """One attempt failed with this status, or words for a failed connection; `passes` if the next one may succeed."""

    def __init__(
        self, status: str, *, passes: bool, may_have_arrived: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(status)
        self.passes, self.may_have_arrived, self.retry_after = passes, may_have_arrived, retry_after


@dataclass(frozen=True)
class Poster:
    """The way to one URL, of an instance in `project`; `end` is the time.monotonic() after which it stops trying."""

    settings: Settings
    secrets: Secrets
    end: float
    project: str
    http: urllib3.PoolManager = field(repr=False)

    def post(self, message: envelope.Envelope) -> None:
        """Returns when the receiver has accepted the message. Raises NotDelivered."""
        failures, may_have_arrived, body = 0, False, message.body()
        sender = f"{self.project}/{message.vnfInstanceId}"
        while True:
            try:
                return self._attempt(self.settings.url, sender, body, REDIRECTS)
            except _Failed as error:
                failures += 1
                may_have_arrived |= error.may_have_arrived
                pause = backoff.delay(failures, error)
                if not error.passes or failures > self.settings.retries or time.monotonic() + pause > self.end:
                    raise NotDelivered(
                        f"{message.cluster}: {self.settings.url} did not accept the event {message.event}: {error} "
                        f"(attempt {failures})",
                        may_have_arrived=may_have_arrived,
                    ) from None
                time.sleep(pause)

    def _attempt(self, url: str, sender: str, body: bytes, redirects: int) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "k8s-cr-driver"}
        headers |= envelope.signed(self.secrets.hmac_key, sender, body, time.time())
        if self.secrets.bearer_token:
            headers["Authorization"] = f"Bearer {self.secrets.bearer_token}"
        limit = urllib3.Timeout(total=max(0.1, min(ATTEMPT, self.end - time.monotonic())))
        with _failures():
            response = self.http.request(
                "POST", url, body=body, headers=headers, timeout=limit, retries=False, redirect=False, preload_content=False
            )
            response.close()
        if response.status in (307, 308):
            return self._attempt(_moved(url, response.headers.get("Location"), redirects), sender, body, redirects - 1)
        if not 200 <= response.status < 300:
            raise _Failed(
                f"status {response.status}",
                passes=response.status == 429 or response.status >= 500,
                may_have_arrived=response.status >= 500 and response.status != 503,  # a proxy may have passed it on
                retry_after=retry_after(response.headers),
            )
        return None


@contextlib.contextmanager
def poster(
    settings: Settings, secrets: Secrets, end: float, judge: pools.Judge = pools.anywhere, project: str = ""
) -> Iterator[Poster]:
    """Raises InvalidRequest for a CA, certificate or key that cannot be read."""
    context = tls.context(
        settings.url, ca=settings.ca_bundle, client_cert=secrets.client_certificate, client_key=secrets.client_key
    )
    with pools.pools(judge, context, maxsize=1) as http:
        yield Poster(settings, secrets, end, project, http)


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except urllib3.exceptions.SSLError as error:
        # A server that starts, or has no free connection, closes it in the handshake. A wrong certificate stays wrong.
        raise _Failed(f"no status: {words(error)}", passes="EOF" in str(error)) from None
    except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
        raise _Failed(f"no status: {words(error)}", passes=True) from None
    except urllib3.exceptions.HTTPError as error:
        raise _Failed(f"no status: {words(error)}", passes=True, may_have_arrived=True) from None
    except InvalidRequest as error:  # of the judge
        raise _Failed(f"no status: {error}", passes=False) from None


def _moved(url: str, location: str | None, redirects: int) -> str:
    try:
        target = urljoin(url, location or "")
    except ValueError:  # it is no URL, and so none of the same server
        target = ""
    if not location or redirects == 0:
        raise _Failed("it redirects again and again", passes=False)
    if origin(target) != origin(url):
        raise _Failed("it redirects to another server, which is refused", passes=False)
    return target
