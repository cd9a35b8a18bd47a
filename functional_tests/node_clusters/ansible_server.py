# SPDX-License-Identifier: Apache-2.0
"""The Ansible server: a machine with Ansible and kubespray or its stand-in, whose user has a key that opens the nodes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ..testbed import nodes
from ..testbed.nodes import USER, Node
from .script import Body

ROOT, INVENTORIES = "/opt/kubespray", f"/home/{USER}/inventories"
PROGRAM, KEY, RUNS = "/usr/local/bin/ansible-playbook", f"/home/{USER}/.ssh/nodes", f"/home/{USER}/runs"
_MODULES = "/opt/ansible"
_PROGRAM = f"""\
#!/bin/sh
for playbook; do :; done
echo "$playbook" >>{RUNS}
export PYTHONPATH={_MODULES} PYTHONPYCACHEPREFIX=/var/tmp/compiled LANG=C.UTF-8
exec python3 -m ansible playbook "$@"
"""


@dataclass(frozen=True)
class Kubespray:
    """Playbooks, the Ansible that runs them, and what the section `ansible` of a request says of them."""

    folder: Path
    modules: Path
    section: Body = field(default_factory=dict)


def stand_in() -> Kubespray:
    """It calls kubeadm on machines that have it."""
    return Kubespray(Path(__file__).parent / "kubespray", nodes.ansible())


class AnsibleServer:
    """It outlives the clusters that are made from it. It has the stand-in by default."""

    def __init__(self, name: str, address: str, kubespray: Kubespray | None = None) -> None:
        self.node = Node(name, address)
        self._kubespray = kubespray or stand_in()

    def boot(self, authorized: str, key: Path) -> None:
        """Without waiting. key: the private key of the nodes."""
        machine = self.node.machine
        self.node.boot(authorized, folders={self._kubespray.modules: _MODULES, self._kubespray.folder: ROOT})
        machine.write(PROGRAM, _PROGRAM, mode=0o755)
        machine.write(KEY, key.read_text(), mode=0o600)
        user = (machine.root / f"home/{USER}").stat()
        for path in (KEY, str(Path(KEY).parent)):
            os.chown(self.file(path), user.st_uid, user.st_gid)

    @property
    def parameters(self) -> Body:
        """The section `ansible` of a request."""
        return {
            "ip_address": self.node.address,
            "username": USER,
            "ssh_key": "bed",
            "host_keys": self.node.host_keys,
            "kubespray_root_path": ROOT,
            "transferring_inventory_path": INVENTORIES,
            "ansible_playbook": PROGRAM,
            "node_key_path": KEY,
            **self._kubespray.section,
        }

    def run(self, line: str) -> str:
        """What a line of the shell prints, run by the user."""
        return self.node.machine.run("runuser", "--user", USER, "--", "sh", "-c", line)

    def is_up(self) -> bool:
        try:
            return self.run("echo yes") == "yes\n"
        except RuntimeError:
            return False

    def file(self, path: str) -> Path:
        """As the host sees it."""
        return self.node.machine.root / path.lstrip("/")

    def runs(self) -> list[str]:
        """The playbooks that were begun."""
        file = self.file(RUNS)
        return file.read_text().splitlines() if file.exists() else []

    def folders(self) -> set[str]:
        """The inventories that there are."""
        folder = self.file(INVENTORIES)
        return {one.name for one in folder.iterdir()} if folder.exists() else set()
