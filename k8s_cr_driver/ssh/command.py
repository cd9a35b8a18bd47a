# SPDX-License-Identifier: Apache-2.0
"""What is run on a host: a program with its arguments, never a line that a shell would interpret."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

_WHOLE = """\
size=$1; shift
given=$(cat; echo .); given=${given%.}
if [ "$(printf %s "$given" | wc -c)" -ne "$size" ]; then echo "its input was cut" >&2; exit 74; fi
printf %s "$given" | "$@"
"""
"""Runs a program once all of its input is there. sshd(8) ends the input when the connection ends, as if that were all."""
OUTPUT_LIMIT = 4 * 1024 * 1024
"""Bytes of a command's output; a command that prints more is ended."""


@dataclass(frozen=True)
class Command:
    """One program. Secrets are given on its standard input: others on the host can read arguments."""

    what: str
    """In the error: "kubeadm init", "the installation of packages"."""
    argv: tuple[str, ...]
    stdin: str = field(default="", repr=False)
    within: float = 60.0
    """Seconds until it has to end."""
    as_root: bool = True
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that an error must not have, although the program may print them."""

    @property
    def line(self) -> str:
        """As SSH transports it: quoted for the login shell of the other side."""
        root = ("sudo", "--non-interactive", "--") if self.as_root else ()
        whole = ("sh", "-c", _WHOLE, "sh", str(len(self.stdin.encode()))) if self.stdin else ()
        return shlex.join((*root, *whole, *self.argv))


def script(what: str, text: str, *args: str, stdin: str = "", within: float = 60.0, secrets: tuple[str, ...] = ()) -> Command:
    """A fixed script of this project as root; `args` are its $1, $2 ..."""
    return Command(what, ("sh", "-euc", text, "sh", *args), stdin, within, secrets=secrets)
