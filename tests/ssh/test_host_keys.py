# SPDX-License-Identifier: Apache-2.0
"""Host keys on the console of a server."""

from __future__ import annotations

import pytest

from k8s_cr_driver.ssh import host_keys

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAgs5p4uAO+qHYCX8uc7+QjKp8SDn5RvD+pyirNCDlqt"
RSA = "ssh-rsa " + "AAAAB3NzaC1yc2E" * 20
BLOCK = f"{host_keys.BEGIN}\n{ED25519} root@one\n{RSA}= root@one\n{host_keys.END}\n"


@pytest.mark.parametrize(
    ("console", "keys"),
    [
        ("", []),
        (BLOCK, [ED25519, f"{RSA}="]),
        (f"[  1.0] cloud-init: {host_keys.BEGIN}\n<14>Nov 28 cloud-init: {ED25519} root@x\n{host_keys.END}", [ED25519]),
        (BLOCK.replace(host_keys.END, ""), []),
        (f"{ED25519}\n", []),
        (BLOCK + BLOCK.replace(ED25519, ED25519.replace("Cl", "Cm")), [ED25519.replace("Cl", "Cm"), f"{RSA}="]),
        (f"{host_keys.BEGIN}\n{ED25519}\n" * 1 + f"{ED25519}\n" * 50 + host_keys.END, [ED25519] * host_keys.KEYS),
    ],
    ids=["nothing", "both", "with prefixes", "not whole", "outside", "of the last boot", "too many"],
)
def test_the_keys_of_a_console_are_those_of_its_last_whole_block(console: str, keys: list[str]) -> None:
    assert host_keys.of_console(console) == keys


def test_a_public_key_is_read_without_its_comment() -> None:
    assert host_keys.public_key(f" {ED25519} me@home\n") == ED25519
    assert host_keys.public_key("ssh-ed25519 short") == ""


def test_a_file_of_known_hosts_has_the_keys_of_an_address() -> None:
    text = f"# all\n10.0.0.5,ansible {ED25519} root\n10.0.0.6 {ED25519.replace('Cl', 'Cm')}\n"
    assert host_keys.known(text, "10.0.0.5") == [ED25519]
    assert host_keys.known(text, "10.0.0.7") == []
    assert host_keys.known(f"@revoked 10.0.0.5 {ED25519}\n", "10.0.0.5") == []
    assert host_keys.known("10.0.0.5 nonsense\n", "10.0.0.5") == []
