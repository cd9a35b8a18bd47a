# SPDX-License-Identifier: Apache-2.0
"""Runs of playbooks on the Ansible server, and what their results say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s_cr_driver.node_clusters.kubespray import ansible_files
from k8s_cr_driver.node_clusters.kubespray.parameters import Ansible
from k8s_cr_driver.objects.fields import field, mapping, text
from k8s_cr_driver.redaction import foreign, printable
from k8s_cr_driver.ssh import detached
from k8s_cr_driver.ssh.command import Command

CLUSTER, SCALE, REMOVE, FACTS = "cluster.yml", "scale.yml", "remove-node.yml", "facts.yml"
SHOWN = 3
"""Hosts whose failures an error has."""
LINES, LINE_LIMIT = 3, 300
_RUN = """\
folder=$1 root=$2 program=$3 playbook=$4; shift 4
cd "$root"
if [ ! -e "$playbook" ]; then playbook=playbooks/$playbook; fi
trap 'rm -f "$folder/secrets.yml"' EXIT
trap 'exit 143' TERM  # dash(1) runs no trap of EXIT when a signal ends it
umask 077
cat >"$folder/secrets.yml"
if [ -s "$folder/secrets.yml" ]; then set -- "$@" --extra-vars "@$folder/secrets.yml"; fi
export ANSIBLE_CONFIG="$folder/ansible.cfg" ANSIBLE_NOCOLOR=1
"$program" --inventory "$folder/hosts.yaml" --become --become-user=root "$@" "$playbook"
"""


@dataclass(frozen=True)
class Playbook:
    """One run of a playbook of kubespray."""

    file: str
    limit: tuple[str, ...] = ()
    """The nodes that it works on; () for all."""
    removed: tuple[str, ...] = ()
    """The nodes that remove-node.yml takes out; they stand in the inventory until it has ended."""
    is_dead: bool = False
    """Whether these do not respond, so that they are not reset."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Those of ansible-playbook. kubespray asks on a terminal before it removes a node, unless it is confirmed."""
        given = [f"--limit={','.join(self.limit)}"] if self.limit else []
        if self.removed:
            variables: dict[str, Any] = {"node": ",".join(self.removed), "skip_confirmation": True}
            if self.is_dead:
                # It drains all the same, by default for 6 minutes, in which no Pod of such a node ends; 0 is no limit.
                variables |= {"reset_nodes": False, "allow_ungraceful_removal": True, "drain_timeout": "1s"}
            given += ["--extra-vars", json.dumps(variables)]
        return tuple(given)


def command(
    playbook: Playbook, ansible: Ansible, instance: str, files: str, secrets: str, hidden: Sequence[str], within: float
) -> Command:
    """Runs it, or waits for its run.

    files: digests of what it reads, so that another inventory is another run. hidden: values that no error may have.
    """
    folder = ansible_files.folder(ansible, instance)
    tags = ("--skip-tags", ",".join(ansible.skip_tags)) if ansible.skip_tags else ()
    given = (*playbook.arguments, *tags)
    digest = hashlib.sha256(json.dumps([files, given]).encode()).hexdigest()[:16]
    argv = ("sh", "-euc", _RUN, "sh", folder, ansible.root, ansible.program, playbook.file, *given)
    what, name = f"{playbook.file} of kubespray", f"{playbook.file}-{digest}"
    return detached.step(what, f"{folder}/{ansible_files.RUN}", name, argv, secrets, within, tuple(hidden))


def events(output: str) -> Iterator[Mapping[str, Any]]:
    """What the callback ansible.posix.jsonl prints, one event a line; other lines are left out."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                yield mapping({"": json.loads(line)}, "")
            except (ValueError, RecursionError):
                continue


def recap(found: Iterable[Mapping[str, Any]]) -> str:
    """What the last event says of each host: how many tasks have changed something, and how many have failed."""
    stats = next((mapping(one, "stats") for one in reversed(list(found)) if "stats" in one), {})
    counts = ("ok", "changed", "failures", "unreachable")
    return "; ".join(
        f"{printable(str(host)[:100])}: " + ", ".join(f"{name} {field(one, name)}" for name in counts if field(one, name))
        for host, one in sorted(stats.items())
    )


def failures(found: Iterable[Mapping[str, Any]]) -> str:
    """Of each host that has failed: its last failed task, and the first lines of what that has said. "" without any."""
    last: dict[str, str] = {}
    failing: set[str] | None = None
    for event in found:
        if text(event, "_event") in ("v2_runner_on_failed", "v2_runner_on_unreachable"):
            task = text(event, "task", "name")
            last |= {str(host): f"{host}: {task}: {_said(result)}" for host, result in mapping(event, "hosts").items()}
        elif "stats" in event:
            failing = {
                str(host)
                for host, one in mapping(event, "stats").items()
                if field(one, "failures") or field(one, "unreachable")
            }
    shown = [said for host, said in last.items() if failing is None or host in failing]
    return " | ".join(shown[:SHOWN]) + (f" | and {len(shown) - SHOWN} more" if len(shown) > SHOWN else "")


def last_task(found: Iterable[Mapping[str, Any]]) -> str:
    """The task that was begun last; "" without any."""
    return next((name for one in reversed(list(found)) if (name := text(one, "task", "name"))), "")


def _said(result: Any) -> str:
    """The first lines of an error, without credentials."""
    keys = ("msg", "stderr", "module_stderr", "stdout")
    said = "\n".join(str(value) for key in keys if (value := field(result, key)))
    # OpenSSH frames a warning in lines of `@`.
    lines = [line.strip(" @\t")[:LINE_LIMIT] for line in said.splitlines() if line.strip(" @\t")]
    return foreign(" / ".join(map(printable, lines[:LINES]))) or "it says nothing"
