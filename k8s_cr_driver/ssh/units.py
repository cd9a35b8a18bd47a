# SPDX-License-Identifier: Apache-2.0
"""Long steps as transient units of systemd on the host.

The end of a connection, or of the conductor, does not end such a step. The retry finds the unit by its name and waits for it:
no second `kubeadm join` starts beside the first. A finished step leaves its status and its output until the next start.
"""

from __future__ import annotations

from k8s_cr_driver.ssh.command import Command, script

FOLDER = "/var/lib/k8s-cr-nodes"
"""What the driver keeps on a host; only root can read it."""
CONNECTION_GRACE = 30.0
"""Seconds that the look at a unit may take longer than the unit."""

_RUN = """\
name=$1 seconds=$2 folder=$3 made=$4; shift 4
umask 077
mkdir -p "$folder"
chmod 0700 "$folder"
log=$folder/$name.log status=$folder/$name.status input=$folder/$name.input
is_running() {
  case $(systemctl show --property=ActiveState --value "$name.service") in
  active|activating|deactivating) true ;;
  *) false ;;
  esac
}
while is_running && [ -e "$status" ]; do sleep 0.1; done  # of a step that has just finished
has_succeeded() { [ -n "$made" ] && [ -e "$made" ] && [ "$(cat "$status" 2>/dev/null)" = 0 ]; }
if ! is_running; then
  if has_succeeded; then exit 0; fi
  rm -f "$status" "$log"
  cat >"$input"
  systemd-run --quiet --collect --unit="$name" --property=RuntimeMaxSec="$seconds" -- sh -c '
    input=$1 log=$2 status=$3; shift 3
    exec <"$input" >"$log" 2>&1
    rm -f "$input"
    code=0; "$@" || code=$?
    echo "$code" >"$status.new"; mv "$status.new" "$status"
  ' sh "$input" "$log" "$status" "$@"
fi
while is_running && [ ! -e "$status" ]; do sleep 0.2; done
tail -c 65536 "$log" 2>/dev/null || true
if [ ! -e "$status" ]; then echo "ended at its limit of $seconds s, or was killed"; exit 124; fi
read -r code <"$status"
exit "$code"
"""


def step(
    what: str,
    name: str,
    argv: tuple[str, ...],
    stdin: str = "",
    within: float = 600.0,
    secrets: tuple[str, ...] = (),
    made: str = "",
) -> Command:
    """
    Runs a program as the unit `name`, or waits for the one that runs already; prints the end of its output.

    made: a file that the program makes. If that is there, and the program has ended with 0, it is not started again.
    """
    patience = within + CONNECTION_GRACE
    return script(what, _RUN, name, str(int(within)), FOLDER, made, *argv, stdin=stdin, within=patience, secrets=secrets)


UNFINISHED = """\
unfinished() { [ -e "$1/$2.log" ] && [ "$(cat "$1/$2.status" 2>/dev/null)" != 0 ]; }
"""
"""A function of a shell: whether the step FOLDER NAME runs, was cut, or has failed."""
