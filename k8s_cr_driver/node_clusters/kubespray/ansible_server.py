# SPDX-License-Identifier: Apache-2.0
"""The Ansible server: what it has, and changes of an instance's folder, all as its user and none as root."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters.kubespray import ansible_files
from k8s_cr_driver.node_clusters.kubespray.parameters import Ansible
from k8s_cr_driver.redaction import lines
from k8s_cr_driver.ssh import detached, files
from k8s_cr_driver.ssh.command import Command, script
from k8s_cr_driver.ssh.files import File

NAME = "the Ansible server"
_LOOK = """\
folder=$1 root=$2 program=$3 key=$4 passwords=$5; shift 5
for path in "$root/cluster.yml" "$root/scale.yml" "$root/remove-node.yml"; do
  if [ ! -f "$path" ]; then echo "missing=$path"; fi
done
if [ ! -f "$root/facts.yml" ] && [ ! -f "$root/playbooks/facts.yml" ]; then echo "missing=$root/playbooks/facts.yml"; fi
for name in "$program" flock setsid timeout $passwords; do
  if ! command -v "$name" >/dev/null; then echo "missing=$name"; fi
done
if [ -n "$key" ] && [ ! -r "$key" ]; then echo "missing=$key"; fi
if [ -L "$folder" ] || { [ -e "$folder" ] && { [ ! -d "$folder" ] || [ ! -O "$folder" ]; }; }; then echo "foreign=$folder"; fi
for path in "$@"; do
  if [ -f "$path" ]; then echo "file=$(sha256sum "$path")"; fi
done
"""
_FOLDER = 'mkdir -p "$(dirname "$1")"; mkdir -p -m 700 "$1"'
_FORGET = 'cd "$1/facts" 2>/dev/null || exit 0; shift; rm -f -- "$@"'
_REMOVE = """\
if [ -L "$1" ]; then echo "$1 is a link" >&2; exit 1; fi
rm -rf -- "$1"
"""


@dataclass(frozen=True)
class Found:
    """What the Ansible server has."""

    digests: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    foreign: str = ""
    """The instance's folder, if it is another user's or a link."""


def _as_user(command: Command) -> Command:
    return dataclasses.replace(command, as_root=False)


def look(ansible: Ansible, instance: str, paths: Iterable[str], *, has_passwords: bool) -> Command:
    """`paths`: of the folder's files. has_passwords: whether Ansible logs in at nodes with one."""
    where, program = ansible_files.folder(ansible, instance), "sshpass" if has_passwords else ""
    args = (where, ansible.root, ansible.program, ansible.node_key, program, *paths)
    return _as_user(script("the look at kubespray", _LOOK, *args))


def read(output: str) -> Found:
    """Of what `look` prints."""
    pairs = [line.partition("=")[::2] for line in output.splitlines()]
    digests = (value.split(maxsplit=1) for key, value in pairs if key == "file")
    return Found(
        {one[1]: one[0] for one in digests if len(one) == 2},
        tuple(value for key, value in pairs if key == "missing"),
        next((value for key, value in pairs if key == "foreign"), ""),
    )


def check(found: Found, ansible: Ansible) -> None:
    """Raises InvalidRequest for all that is missing."""
    problems = [f"{NAME} ({ansible.address}) has no {one}, which {ansible.username} can use" for one in found.missing]
    if found.foreign:
        problems.append(f"{NAME} ({ansible.address}): {found.foreign} is not a folder of {ansible.username} itself: remove it")
    if problems:
        raise InvalidRequest(lines(problems))


def write(ansible: Ansible, instance: str, changed: Iterable[File]) -> list[Command]:
    """Replaces these files of the instance's folder, which only its user can read."""
    folder = _as_user(script("the instance's folder", _FOLDER, ansible_files.folder(ansible, instance)))
    return [folder, *(_as_user(files.replace(file)) for file in changed)]


def forget(ansible: Ansible, instance: str, names: Iterable[str]) -> Command:
    """Deletes the facts of these nodes."""
    return _as_user(script("the removal of facts", _FORGET, ansible_files.folder(ansible, instance), *names))


def stop(ansible: Ansible, instance: str) -> Command:
    """Ends the playbook that runs for the instance, which may have no time to remove its passwords."""
    folder = ansible_files.folder(ansible, instance)
    return detached.stop("the end of playbooks", f"{folder}/{ansible_files.RUN}", f"{folder}/{ansible_files.SECRETS}")


def remove(ansible: Ansible, instance: str) -> list[Command]:
    """Ends what runs there, and removes the instance's folder."""
    where = ansible_files.folder(ansible, instance)
    return [stop(ansible, instance), _as_user(script("the removal of the instance's folder", _REMOVE, where))]
