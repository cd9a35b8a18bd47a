# SPDX-License-Identifier: Apache-2.0
"""The keys by which a host is known before the first connection: given, of an authority, or read from its console.

cloud-init prints the host's public keys on its console between two marks (module cc_ssh_authkey_fingerprints and
`ssh_util.write_ssh_host_keys_to_console`, on by default in the images of Debian and Ubuntu). The console is read through
Nova's API, so this is an authenticated first contact.
"""

from __future__ import annotations

import re

BEGIN, END = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
KEYS = 10
"""Keys that are read of a console."""
_KEY = re.compile(rf"\b({'|'.join(map(re.escape, TYPES))}) ([A-Za-z0-9+/]{{40,2000}}={{0,2}})(?![A-Za-z0-9+/=])")


def of_console(text: str) -> list[str]:
    """The keys `TYPE BASE64` in the last block that a console shows; [] until cloud-init has printed it whole."""
    start = text.rfind(BEGIN)
    end = text.find(END, start)
    if start < 0 or end < 0:
        return []
    return [" ".join(found.groups()) for found in list(_KEY.finditer(text, start, end))[:KEYS]]


def known(text: str, address: str) -> list[str]:
    """The keys that a file of known hosts has for an address (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT), none that is revoked."""
    import asyncssh  # it is slow to import, and the conductor reads no such file

    try:
        found = asyncssh.import_known_hosts(text).match(address, address, None)
    except (ValueError, asyncssh.KeyImportError):
        return []
    return list(dict.fromkeys(public_key(key.export_public_key().decode()) for key in found[0]))


def public_key(text: str) -> str:
    """A public key without its comment; "" if it is none."""
    found = _KEY.match(text.strip())
    return " ".join(found.groups()) if found else ""
