# SPDX-License-Identifier: Apache-2.0
"""Where a cluster is and how to authenticate there."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from k8s_cr_driver.kube import auth, tls
from k8s_cr_driver.kube.pools import Judge, anywhere


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

    def tls_context(self) -> ssl.SSLContext | None:
        """None for http. InvalidRequest: a certificate or key cannot be read."""
        return tls.context(
            self.url, ca=self.ca, verify=self.verify, client_cert=self.client_cert, client_key=self.client_key
        )
