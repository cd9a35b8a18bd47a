"""
Whom to trust and who we are: PEM texts -> a TLS context.

Key material stays in memory; what the ssl module reads from files only (a client certificate) is in a 0600 file for as
long as the reading takes.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from urllib.parse import urlsplit

from k8s_cr_driver.errors import ConnectionFailed, DriverError, InvalidRequest, TransportError


def context(
    url: str, *, ca: str = "", verify: bool = True, client_cert: str = "", client_key: str = ""
) -> ssl.SSLContext | None:
    """For a client of `url`; None if that is no https. `ca`: PEM, "" for the system's CAs. Raises InvalidRequest."""
    if urlsplit(url).scheme != "https":
        return None
    try:
        if not verify:
            made = ssl._create_unverified_context()  # noqa: S323 (an option of the operator, warned about)
        else:
            made = ssl.create_default_context(cadata=ca or None)
        # Kubernetes' own CAs lack extensions that the strict mode of Python 3.13 wants.
        made.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if client_cert:
            _load_client_certificate(made, client_cert, client_key)
    except ssl.SSLError as error:
        what = "ssl_ca_cert, or a client's certificate or key,"
        raise InvalidRequest(f"vimConnectionInfo: {what} cannot be read: {error.reason or 'it is damaged'}") from None
    return made


def failure(url: str, words: str) -> DriverError:
    """What OpenSSL's words about a connection to `url` mean."""
    told = re.sub(r"\s*\(_ssl\.c:\d+\)", "", words)
    if "WRONG_VERSION_NUMBER" in told or "HTTP_REQUEST" in told:
        return ConnectionFailed(f"{url} does not speak TLS: check whether it is http or https, and its port.")
    if "EOF" in told:  # what a load balancer does in front of a server that restarts
        return TransportError(f"{url} has closed the connection: {told}")
    return ConnectionFailed(
        f"The certificate of {url} was not accepted: {told}. Give the CA in vimConnectionInfo.interfaceInfo.ssl_ca_cert."
    )


def pem(text: str) -> str:
    """A PEM whose newlines may have become spaces, as command lines and databases make them."""
    blocks = re.findall(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", text, re.S)
    lines = []
    for label, body in blocks:
        lines += [f"-----BEGIN {label}-----", *re.split(r"\s+", body.strip()), f"-----END {label}-----"]
    return "\n".join(lines) + "\n" if lines else ""


def _load_client_certificate(made: ssl.SSLContext, certificate: str, key: str) -> None:
    handle, path = tempfile.mkstemp()  # 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(certificate + "\n" + key)
        made.load_cert_chain(path)
    finally:
        os.unlink(path)
