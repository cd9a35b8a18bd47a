# SPDX-License-Identifier: Apache-2.0
"""
Reads manifests at URLs, for a package that names some in lcm-kubernetes-def-files.

A package is of a stranger, and the conductor reads from its own place in the network. So a connection goes only where the
operator allows it, to an address that was judged, and no redirect is followed. One deadline holds for all URLs of a package.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import urllib3

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.kube import bounded, tls
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.kube.pools import pools
from k8s_cr_driver.package.files import SIZE_LIMIT, shown

CONNECT_TIMEOUT = 10.0
SECONDS = 60.0
"""For all URLs of a package together."""
ATTEMPTS = 3
_MAY_PASS = (urllib3.exceptions.ProtocolError, urllib3.exceptions.NewConnectionError)


class RemoteManifests:
    """Returns the content of a URL. `allowed` are hosts and networks, as `EndpointRules` has them; none allow nothing."""

    def __init__(self, allowed: Sequence[str], seconds: float = SECONDS) -> None:
        self._is_allowed = bool(allowed)
        self._rules = EndpointRules(tuple(allowed), option="[k8s_cr] allow_remote_manifests")
        self._seconds, self._until = seconds, time.monotonic() + seconds

    def __call__(self, url: str) -> bytes:
        """Raises InvalidPackage, whose text has no query of the URL; InvalidRequest for an address that is not allowed."""
        if not (self._is_allowed and self._rules.may_permit((urlsplit(url).hostname or "").lower())):
            raise InvalidPackage(
                f"{shown(url)}: manifests at a URL are read only of the hosts that the operator names in [k8s_cr] "
                "allow_remote_manifests; put the file into the package"
            )
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._content(url)
            except urllib3.exceptions.HTTPError as error:
                if not (left and isinstance(error, _MAY_PASS)):
                    raise InvalidPackage(f"{shown(url)}: cannot be read: {_words(error)}") from None
        raise AssertionError("the last attempt has no result")

    def _content(self, url: str) -> bytes:
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise InvalidPackage(
                f"{shown(url)}: the manifests at URLs were not read within {self._seconds:g} s; put the file into the package"
            )
        timeout = urllib3.Timeout(connect=min(CONNECT_TIMEOUT, seconds), total=seconds)
        with pools(self._rules, tls.context(url), timeout=timeout, retries=False) as http:
            opened = http.request("GET", url, redirect=False, preload_content=False, decode_content=False)
            with contextlib.closing(opened) as response:
                if response.status != 200:
                    raise InvalidPackage(f"{shown(url)}: the server responded with {response.status}; expected 200")
                return bounded.Response(response, self._until, SIZE_LIMIT).data


def _words(error: urllib3.exceptions.HTTPError) -> str:
    """The text of an error of parsing repeats the URL with its query."""
    return "it is no URL" if isinstance(error, urllib3.exceptions.LocationValueError) else bounded.words(error)
