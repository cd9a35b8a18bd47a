# SPDX-License-Identifier: Apache-2.0
"""
Requests to the services of an OpenStack cloud: keystoneauth forms them and reads the catalog, and they are sent here.

Whoever names a Keystone chooses the URLs of its catalog. So each URL and each address is judged, no redirect is followed, a
response has limits of time and size, and of one that refuses a request only the message is shown that OpenStack's errors have.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from urllib3 import HTTPHeaderDict

from k8s_cr_driver.errors import DriverError, InvalidRequest, TransportError, Unreadable
from k8s_cr_driver.kube import once, tls
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.objects.decoding import decoded
from k8s_cr_driver.objects.fields import mapping, text
from k8s_cr_driver.redaction import foreign, words

WITHIN = 60.0
"""Seconds for one response."""
CONNECT_WITHIN = 10.0
RESPONSE_LIMIT = 32 * 1024 * 1024
"""Bytes of a response: the lists of a project have about 2 KiB for each port or volume."""
VALUES_LIMIT = 2_000_000
"""JSON values of a response, which take about 200 MB."""
MESSAGE_LIMIT = 200
"""Characters that are shown of the message with which a service refuses a request."""
logging.getLogger("keystoneauth.identity").setLevel(logging.INFO)
"""At DEBUG keystoneauth logs the whole response to the credentials."""
_MALFORMED = (exceptions.ClientException, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What keystoneauth raises for responses that are not as they should be."""


class CloudError(DriverError):
    """OpenStack does not respond as it should."""

    title = "OpenStack failed"


class Away(CloudError):
    """A service does not respond, or fails with a 5xx: the same request may succeed later."""


def session(plugin: Any, rules: EndpointRules, verify: bool | str, until: float = math.inf) -> Session:
    """
    The session of these credentials, whose requests go where `rules` permit it.

    verify: whether certificates are verified, or the path of the CA. until: a monotonic time at which requests end.
    """
    opened: Any = _Sender(rules, verify, until)
    return Session(plugin, session=opened, redirect=False, timeout=WITHIN)


def request(api: Adapter, who: str, method: str, path: str, **options: Any) -> Mapping[str, Any]:
    """
    The JSON object of a response of a service, {} without a body. Raises CloudError, Away among them, InvalidRequest.

    who: the service, for errors. Nothing of a request is logged: its body may have secrets.
    """
    attempt = f"{who}: {method} {path}"
    with explained(attempt):
        response = api.request(path, method, raise_exc=False, log=False, **options)
    if response.status_code >= 300:
        raise _refusal(attempt, response.status_code, response.content)
    try:
        return mapping(response.json()) if response.content else {}
    except ValueError:
        raise CloudError(f"{attempt}: the response is no JSON") from None


@contextlib.contextmanager
def explained(attempt: str) -> Iterator[None]:
    """Encloses calls of keystoneauth: CloudError and InvalidRequest, which begin with `attempt`."""
    try:
        yield
    except InvalidRequest as error:
        raise type(error)(f"{attempt}: {error}") from None
    except exceptions.HttpError as error:
        content = b"" if error.response is None else error.response.content
        raise _refusal(attempt, error.http_status, content) from None
    except exceptions.DiscoveryFailure:  # its text has the begin of the response
        raise CloudError(f"{attempt}: the URL in the catalog, or that of Keystone, lists no versions of an API") from None
    except exceptions.ConnectFailure as error:
        raise Away(f"{attempt}: {words(error)}") from None
    except exceptions.ClientException as error:
        raise CloudError(f"{attempt}: {words(error)}") from None
    except DriverError as error:
        raise CloudError(f"{attempt}: {error}") from None
    except _MALFORMED:
        raise CloudError(f"{attempt}: the response is malformed") from None


def _refusal(attempt: str, status: int, content: bytes) -> CloudError:
    return (Away if status >= 500 else CloudError)(f"{attempt}: status {status}{_message(content)}")


def _message(content: bytes) -> str:
    """As OpenStack's services say it: {"error": {"message": ...}}, with another key in some. Nothing of other bodies."""
    try:
        found = mapping(decoded(content, VALUES_LIMIT))
    except ValueError:
        return ""
    said = next((text(one, "message") for one in found.values() if isinstance(one, dict)), "")
    return f": {foreign(said[:MESSAGE_LIMIT])}" if said else ""


_IGNORED = ("location", "retry-after", "x-openstack-request-id", "x-compute-request-id")
"""Headers by which a server says where a request goes, how long keystoneauth sleeps, and what it logs."""


@dataclass
class _Response:
    """In the place of a response of `requests`."""

    status_code: int
    url: str
    headers: Mapping[str, str]
    content: bytes = field(repr=False)
    reason: str = ""
    history: list[Any] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        return decoded(self.content, VALUES_LIMIT)


@dataclass
class _Sender:
    """In the place of a session of `requests`, which keystoneauth uses."""

    rules: EndpointRules
    verify: bool | str = field(repr=False)
    until: float = math.inf

    def request(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, params: Any = None, data: str = "", **_: Any
    ) -> _Response:
        """Sends it once. Raises ConnectFailure where the same request may succeed later, Unreadable, ConnectionFailed."""
        parts = urlsplit(url)
        self.rules.check(url, f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
        try:
            sent = once.Way(self.rules, self._tls(url)).send(
                method,
                f"{url}?{urlencode(params, doseq=True)}" if params else url,
                headers=headers or {},
                body=data or "",
                connect=CONNECT_WITHIN,
                within=min(WITHIN, max(self.until - time.monotonic(), 0.001)),
                limit=RESPONSE_LIMIT,
            )
        except Unreadable:
            raise
        except TransportError as error:
            raise exceptions.ConnectFailure(str(error)) from None
        kept = {name.lower(): value for name, value in sent.headers.items() if name.lower() not in _IGNORED}
        return _Response(sent.status, url, HTTPHeaderDict(kept), sent.data)

    def _tls(self, url: str) -> Any:
        if not isinstance(self.verify, str):
            return tls.context(url, verify=self.verify)
        try:
            return tls.context(url, ca=Path(self.verify).read_text(encoding="ascii"))
        except (OSError, UnicodeDecodeError):
            raise InvalidRequest(f"the file {self.verify} with the CA of the OpenStack cloud cannot be read") from None


