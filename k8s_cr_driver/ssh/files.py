# SPDX-License-Identifier: Apache-2.0
"""Files of a host that are replaced whole: written beside the old one, checked by their own program, then renamed.

What is right already is not touched, so that a second run changes nothing and no service is reloaded for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from k8s_cr_driver.ssh.command import Command, script

_REPLACE = """\
path=$1 mode=$2; shift 2
folder=$(dirname "$path")
mkdir -p "$folder"
umask 077
new=$(mktemp "$folder/.new.XXXXXXXX")
trap 'rm -f "$new"' EXIT
cat >"$new"
chmod "$mode" "$new"
if [ $# -gt 0 ]; then "$@" "$new"; fi
mv -f "$new" "$path"
trap - EXIT
"""


@dataclass(frozen=True)
class File:
    """A file as it has to be."""

    path: str
    content: str = field(repr=False)
    mode: str = "0644"
    check: tuple[str, ...] = ()
    """A program that gets the new file as its last argument, and ends with 0 if it is right: `haproxy -c -f`."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content.encode()).hexdigest()


def replace(file: File) -> Command:
    """Writes the file, unless its check fails; then the old one stays."""
    return script(f"the new {file.path}", _REPLACE, file.path, file.mode, *file.check, stdin=file.content)
