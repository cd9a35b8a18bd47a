# SPDX-License-Identifier: Apache-2.0
"""PEM texts -> a TLS context: which CA to trust, which client certificate to show.

Key material stays in memory. The ssl module reads client certificates from files only, so these stand in an anonymous file
in memory (memfd_create(2)) while it reads them.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import Any

from k8s_cr_driver.errors import Concern, ConnectionFailed, DriverError, InvalidRequest, TransportError

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,64})-----([^-]*)-----END \1-----")
"""Linear: no base64 has a hyphen, so a search ends at the next one."""


def is_https(url: str) -> bool:
    """Also of a scheme in capital letters, which urllib3 takes for the same (RFC 3986, 3.1)."""
    return url.lower().startswith("https:")


def context(
    url: str, *, ca: str = "", verify: bool = True, client_cert: str = "", client_key: str = ""
) -> ssl.SSLContext | None:
    """For a client of `url`; None if that is no https. `ca`: PEM, "" for the system's CAs. Raises InvalidRequest."""
    if not is_https(url):
        return None
    try:
        if not verify:
            tls = ssl._create_unverified_context()  # noqa: S323 (an option, warned about)  # nosec B323
        else:
            tls = ssl.create_default_context(cadata=ca or None)
        # Kubernetes' own CAs do not have the extensions that Python 3.13 demands in strict mode.
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if client_cert:
            _load_client_certificate(tls, client_cert, client_key)
    except (OSError, ValueError, TypeError) as error:  # the latter two for what is not ASCII, or empty
        reason = error.reason if isinstance(error, ssl.SSLError) else ""
        what = "The CA, or the client's certificate or key,"
        raise InvalidRequest(f"{what} cannot be read: {reason or 'it is damaged'}", Concern.CA) from None
    tls.__class__ = _Closing
    return tls


class _Closing(ssl.SSLContext):
    """
    Closes a socket whose handshake fails, as CPython's own `wrap_socket` does.

    With eventlet it stays open until the garbage collector finds it (GreenSSLSocket.__init__).
    """

    def wrap_socket(self, sock: socket.socket, *_: Any, server_hostname: str | bytes | None = None, **__: Any) -> ssl.SSLSocket:
        made = super().wrap_socket(sock, do_handshake_on_connect=False, server_hostname=server_hostname)
        try:
            made.do_handshake()
        except BaseException:
            made.close()
            raise
        return made


def failure(url: str, words: str) -> DriverError:
    """The error for OpenSSL's words about a connection to `url`."""
    reason = re.sub(r"\s{0,8}\(_ssl\.c:\d+\)", "", words)
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason:
        return ConnectionFailed(f"{url} does not speak TLS: check whether it is http or https, and its port.")
    if "EOF" in reason:  # what a load balancer does in front of a server that restarts
        return TransportError(f"{url} has closed the connection: {reason}")
    return ConnectionFailed(f"The certificate of {url} was not accepted: {reason}.", Concern.CA)


def pem(text: str) -> str:
    """A PEM whose newlines may have become spaces, as command lines and databases turn them."""
    blocks = _PEM.findall(text)
    lines = []
    for label, body in blocks:
        lines += [f"-----BEGIN {label}-----", *re.split(r"\s+", body.strip()), f"-----END {label}-----"]
    return "\n".join(lines) + "\n" if lines else ""


def _load_client_certificate(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    with os.fdopen(os.memfd_create("client-certificate"), "w") as file:
        file.write(certificate + "\n" + key)
        file.flush()
        tls.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=_no_password)


def _no_password() -> str:
    """For an encrypted key: OpenSSL would ask for its password on the terminal."""
    raise ValueError("the key is encrypted")
