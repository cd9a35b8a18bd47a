# SPDX-License-Identifier: Apache-2.0
"""One request to a server that is no API server, such as a provider of tokens.

It may carry credentials, so it goes to its URL alone: no redirect is followed, and no proxy of the environment is used.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import NamedTuple

import urllib3

from k8s_cr_driver.errors import TransportError, Unreadable
from k8s_cr_driver.kube import bounded, tls
from k8s_cr_driver.kube.pools import Judge, pools

RESPONSE_LIMIT = 1024 * 1024
"""Bytes of a response."""


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
    ) -> bounded.Response:
        """The response, whatever its status, within so many seconds.

        Raises TransportError, of which Unreadable for one that is too large or encoded, and ConnectionFailed.
        """
        try:
            with pools(self.judge, self.tls) as http:
                response = bounded.request(
                    http, method, url, body=body or None, headers=headers, connect=connect, within=within, limit=limit
                )
                _ = response.data  # is read here, where its errors are understood
                return response
        except urllib3.exceptions.SSLError as error:
            raise tls.failure(url, str(error)) from None
        except urllib3.exceptions.HTTPError as error:
            is_refused = type(error) is urllib3.exceptions.HTTPError  # as `bounded` raises it
            raise (Unreadable if is_refused else TransportError)(f"{method} {url}: {bounded.words(error)}") from None
