# SPDX-License-Identifier: Apache-2.0
"""etcd's own API through the HTTP gateway of a master (etcd's documents, "etcd v3 API"): images need no etcdctl."""

from __future__ import annotations

from k8s_cr_driver.ssh.command import Command, script

CALL = """\
etcd() {
  seconds=$1; shift
  curl --silent --show-error --fail --max-time "$seconds" --cacert /etc/kubernetes/pki/etcd/ca.crt \\
    --cert /etc/kubernetes/pki/etcd/healthcheck-client.crt --key /etc/kubernetes/pki/etcd/healthcheck-client.key "$@"
}
members() { etcd "$1" --request POST --data "$3" "https://127.0.0.1:2379/v3/cluster/member/$2"; }
"""
"""Two functions of a shell: `etcd SECONDS URL`, and `members SECONDS VERB JSON` of the member beside it."""
_REMOVE = CALL + """members 30 remove "{\\"ID\\": \\"$1\\"}"\n"""


def remove_member(identifier: str) -> Command:
    """Removes the member with that id."""
    return script("the removal of the etcd member", _REMOVE, identifier)
