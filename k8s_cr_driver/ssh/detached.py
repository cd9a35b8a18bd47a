# SPDX-License-Identifier: Apache-2.0
"""Long steps of a user who is not root: processes in a session of their own, one at a time in a folder.

As with units of systemd, the end of a connection, or of the conductor, does not end such a step. It holds a lock of its folder
as long as it runs. Who wants the same step meanwhile waits for its end and takes its result; another step waits and follows.
"""

from __future__ import annotations

import dataclasses

from k8s_cr_driver.ssh.command import Command, script
from k8s_cr_driver.ssh.units import CONNECTION_GRACE

SHOWN = 1024 * 1024
"""Bytes of a step's output that are read, from its end."""

LATE = 124
"""Status of a step that was ended at its limit (timeout(1))."""

_RUN = """\
folder=$1 name=$2 seconds=$3 shown=$4; shift 4
umask 077
mkdir -p "$folder"
cd "$folder"
start() {
  rm -f status pid
  printf '%s' "$name" >name
  cat >input
  setsid sh -c '
    seconds=$1; shift
    exec >log 2>&1 8<input
    rm -f input
    timeout --kill-after=30 "$seconds" "$@" <&8 &
    echo $! >pid
    code=0; wait $! || code=$?
    echo "$code" >status.new; mv status.new status
  ' sh "$seconds" "$@" &
  exec 9>&-
  exec 9>>lock
  flock --timeout "$patience" 9
}
patience=$((seconds + 20))
exec 9>>lock
if flock --nonblock 9; then
  start "$@"
else
  running=$(cat name)
  flock --timeout "$patience" 9 || { echo "$running still runs"; exit 124; }
  if [ "$running" != "$name" ] || [ ! -e status ]; then start "$@"; fi
fi
tail -c "$shown" log 2>/dev/null || true
if [ ! -e status ]; then echo "was killed"; exit 137; fi
read -r code <status
exit "$code"
"""
_STOP = """\
folder=$1; shift
trap 'rm -f -- "$@"' EXIT
cd "$folder" 2>/dev/null || exit 0
exec 9>>lock
for signal in TERM TERM TERM KILL; do
  if flock --timeout 1 9; then exit 0; fi
  [ ! -s pid ] || kill -s "$signal" -- "-$(cat pid)" || true  # the group of `timeout`
done
flock --timeout 5 9
"""


def step(
    what: str,
    folder: str,
    name: str,
    argv: tuple[str, ...],
    stdin: str = "",
    within: float = 600.0,
    secrets: tuple[str, ...] = (),
) -> Command:
    """Runs a program, or waits for the one that runs already; prints the end of its output, and ends with its status."""
    command = script(what, _RUN, folder, name, str(int(within)), str(SHOWN), *argv, stdin=stdin, secrets=secrets)
    return dataclasses.replace(command, as_root=False, within=2 * within + CONNECTION_GRACE)


def stop(what: str, folder: str, *files: str) -> Command:
    """Ends the step that runs there, with all that it has started, and removes these files, which it may have left."""
    return dataclasses.replace(script(what, _STOP, folder, *files), as_root=False)
