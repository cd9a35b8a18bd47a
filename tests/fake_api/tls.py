# SPDX-License-Identifier: Apache-2.0
"""A certificate authority and a server certificate for one address, made in memory in a few milliseconds."""

import ipaddress
import os
import ssl
import tempfile
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def server_context(address: str = "127.0.0.1") -> tuple[ssl.SSLContext, str]:
    """(context for the server, PEM of the CA that clients need)."""
    chain, ca = server_certificate(address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(chain)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
    return context, ca


def server_certificate(address: str = "127.0.0.1", lasts: timedelta = timedelta(days=2)) -> tuple[bytes, str]:
    """(PEM of the server's certificate and key, PEM of the CA); the server's certificate serves a client, too.

    They are valid since an hour ago, for as long as `lasts`.
    """
    ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = _certificate("fake-ca", ca_key.public_key(), "fake-ca", ca_key, lasts)
    leaf = _certificate("kube-apiserver", server_key.public_key(), "fake-ca", ca_key, lasts, address)
    private = server_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                       serialization.NoEncryption())
    return leaf.public_bytes(serialization.Encoding.PEM) + private, ca.public_bytes(serialization.Encoding.PEM).decode()


def _certificate(subject: str, key: ec.EllipticCurvePublicKey, issuer: str, signer: ec.EllipticCurvePrivateKey,
                 lasts: timedelta, address: str = "") -> x509.Certificate:
    """Of a server at `address`, or of an authority."""
    authority = not address
    start = datetime.now(timezone.utc) - timedelta(hours=1)
    usage = x509.KeyUsage(digital_signature=True, key_cert_sign=authority, crl_sign=authority,
                          content_commitment=False, key_encipherment=False, data_encipherment=False,
                          key_agreement=False, encipher_only=False, decipher_only=False)
    builder = (x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name(issuer)).public_key(key)
               .serial_number(x509.random_serial_number()).not_valid_before(start)
               .not_valid_after(start + lasts)
               .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
               .add_extension(usage, critical=True)
               .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
               .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False))
    if not authority:
        names = [x509.IPAddress(ipaddress.ip_address(address)), x509.DNSName("localhost")]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
