# SPDX-License-Identifier: Apache-2.0
"""A host, how to log in there, and the errors that name it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.redaction import foreign, printable

LINES = 8
"""Last lines of a failed command that its error has."""
LINE_LIMIT = 300
"""Characters of each of them."""
PORT = 22
_BEGIN, _END, _REMOVED = "-----BEGIN ", "-----END ", "[removed]"


@dataclass(frozen=True)
class Host:
    """Where a host is, and what identifies both sides. Secrets are kept out of `repr`."""

    name: str
    """As errors name it."""
    address: str
    user: str
    trusted: tuple[str, ...] = ()
    """Public keys of the host, as a line `TYPE BASE64`; one of them has to be its key."""
    authorities: tuple[str, ...] = ()
    """Public keys of authorities that may have signed the host's key."""
    private_key: str = field(default="", repr=False)
    """The user's, as OpenSSH or PEM without a passphrase; used before the password."""
    password: str = field(default="", repr=False)
    port: int = PORT


class HostError(DriverError):
    """A host does not do what it has to; the text begins with the host's name."""

    title = "A server failed"

    def __init__(self, host: Host, problem: str) -> None:
        super().__init__(f"{host.name} ({host.address}): {problem}")
        self.host = host


class OutOfTime(DriverError):
    """The operation has no time left; nothing is tried again."""

    title = "Out of time"


class Unreachable(HostError):
    """No connection, or it ended: the same may succeed later."""


class LoginRefused(HostError):
    """The host does not accept the user, or not yet: one that is booting has no such user, or lets only root log in."""


class NotTrusted(HostError):
    """The host shows another key than those it may have."""


class CommandFailed(HostError):
    """A command ended with another status than 0, or not before its deadline."""

    def __init__(self, host: Host, what: str, status: int | None, output: str) -> None:
        ended = "did not end before its deadline" if status is None else f"ended with status {status}"
        said = last_lines(output)
        self.exit_status = status
        self.output = output
        super().__init__(host, f"{what} {ended}" + (f": {said}" if said else ", and printed nothing"))


def last_lines(output: str) -> str:
    """The end of what a command printed, on one line and without credentials."""
    lines = _without_keys(line.strip() for line in output.splitlines() if line.strip())
    return foreign(" | ".join(printable(line[:LINE_LIMIT]) for line in lines[-LINES:]))


def _without_keys(lines: Iterable[str]) -> list[str]:
    """Without what stands between the marks of PEM, of which the last lines may show one only."""
    kept, is_inside = list[str](), False
    for line in lines:
        begins, ends = _BEGIN in line, _END in line
        if begins and ends:
            kept.append(line)  # all of it on one line, as `foreign` removes it
        elif begins:
            kept.append(_REMOVED)
            is_inside = True
        elif ends:
            kept, is_inside = kept if is_inside else [_REMOVED], False
        elif not is_inside:
            kept.append(line)
    return kept


def without(text: str, secrets: Sequence[str]) -> str:
    """`text` without these values, which a command may have printed."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, _REMOVED)
    return text
