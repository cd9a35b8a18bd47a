# SPDX-License-Identifier: Apache-2.0
"""Where a cluster is and how to authenticate there."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import urllib3

from k8s_cr_driver.kube import auth, tls
from k8s_cr_driver.kube.pools import Judge, anywhere


def always(url: str) -> bool:
    """The consent to every URL."""
    del url
    return True


@dataclass(frozen=True)
class Endpoint:
    """Where a cluster is and how to authenticate; secrets are kept out of `repr`."""

    url: str
    ca: str = field(default="", repr=False)
    """PEM; "" for the system's CAs."""
    verify: bool = True
    authorization: str = field(default="", repr=False)
    """The Authorization header; "" with a `provider`, which gives it."""
    provider: auth.Provider | None = None
    client_cert: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)

    judge: Judge = anywhere
    """Which addresses a connection may go to, also that to the `provider`; comparable, as the other fields."""
    consent: Callable[[str], bool] = always
    """Whether credentials in objects of the cluster may be sent to a URL that these name; it may ask a user."""
    plain_http: bool = False
    """Whether what the cluster names may be http although the cluster is not."""

    def may_name(self, url: str) -> bool:
        """Whether a connection may go to an http(s) URL that an object of the cluster names, as far as its scheme says."""
        return self.plain_http or tls.is_https(url) or not tls.is_https(self.url)

    def tls_context(self) -> ssl.SSLContext | None:
        """None for http. InvalidRequest: a certificate or key cannot be read."""
        return tls.context(
            self.url, ca=self.ca, verify=self.verify, client_cert=self.client_cert, client_key=self.client_key
        )


def is_plain(url: str) -> bool:
    """Whether an http(s) URL has nothing but a host, a port and a path: others could have a request go to another path."""
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(urllib3.util.parse_url(url).host)
    except (ValueError, urllib3.exceptions.LocationParseError):
        return False
    steps = unquote(parts.path).replace("\\", "/").split("/")
    return is_http and url.isprintable() and not set("?#@ ").intersection(url) and {".", ".."}.isdisjoint(steps)
