# SPDX-License-Identifier: Apache-2.0
"""One request to a server that is no API server, such as a provider of tokens.

It may carry credentials, so it goes to its URL alone: no redirect is followed, and no proxy of the environment is used.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import NamedTuple

import urllib3

from k8s_cr_driver.errors import TransportError, Unreadable
from k8s_cr_driver.kube import bounded, tls
from k8s_cr_driver.kube.pools import Judge, pools

RESPONSE_LIMIT = 1024 * 1024
"""Bytes of a response."""


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes


class Way(NamedTuple):
    """How to reach a server: which addresses are permitted, and whom TLS trusts."""

    judge: Judge
    tls: ssl.SSLContext | None

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes = "",
        connect: float,
        within: float,
        limit: int = RESPONSE_LIMIT,
    ) -> Response:
        """The response, whatever its status, within so many seconds.

        Raises TransportError, of which Unreadable for one that is too large or encoded, and ConnectionFailed.
        """
        until = time.monotonic() + within
        try:
            with pools(self.judge, self.tls, timeout=urllib3.Timeout(connect=min(connect, within), total=within)) as http:
                response = http.request(
                    method,
                    url,
                    body=body or None,
                    headers=headers,
                    decode_content=False,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                )
                return Response(response.status, response.headers, bounded.Response(response, until, limit).data)
        except urllib3.exceptions.SSLError as error:
            raise tls.failure(url, str(error)) from None
        except urllib3.exceptions.HTTPError as error:
            is_refused = type(error) is urllib3.exceptions.HTTPError  # as `bounded` raises it
            raise (Unreadable if is_refused else TransportError)(f"{method} {url}: {bounded.words(error)}") from None
