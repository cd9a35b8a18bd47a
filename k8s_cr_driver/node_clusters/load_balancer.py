# SPDX-License-Identifier: Apache-2.0
"""The external load balancer: one HAProxy with the API of a cluster, and NodePorts of Services in it.

Its configuration follows from data that stand beside it, one file of the cluster and one of each CNF that exposes Services. So
another worker is a server of each NodePort at once, and who leaves takes its own entries only. Two operations may want a change
at the same time: each change is of the data that were read, else it is refused, and made again from what is there then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.errors import DriverError, InvalidRequest
from k8s_cr_driver.node_clusters.inventory import Inventory
from k8s_cr_driver.node_clusters.kubeadm.balancing import API_SERVER_PORT, HAPROXY, LET_GO
from k8s_cr_driver.objects.fields import entries, mapping, sequence, text
from k8s_cr_driver.ssh.command import Command, script
from k8s_cr_driver.ssh.host import CommandFailed
from k8s_cr_driver.ssh.units import FOLDER

CLUSTER = "cluster"
TRIES = 10
"""Of a change while others change the load balancer, too."""
CHANGED = 75
"""Status of a change whose data were changed by others meanwhile (EX_TEMPFAIL of sysexits.h)."""
_DATA = f"{FOLDER}/balancer"

_PORTS = """\
command -v ss >/dev/null || { echo "ss is missing there: install iproute2" >&2; exit 1; }
is_active() { [ "$(systemctl is-active haproxy 2>/dev/null || true)" = active ]; }
wanted() { sed -n 's/^  bind .*:\\([0-9]*\\)$/\\1/p' "$1"; }
listening() { ss -Hltn | awk '$4 !~ /^\\[/ {sub(/.*:/, "", $4); print $4}'; }
others() { ss -Hltnp | awk '$4 !~ /^\\[/ && !/"haproxy"/ {sub(/.*:/, "", $4); print $4}'; }
except() { for port in $1; do case " $(echo $2) " in *" $port "*) ;; *) echo "$port" ;; esac; done; }
"""
"""Functions of ports: those of a configuration, those at which any program listens, or another than HAProxy, and those of $1
that $2 has not."""
_LOOK = """\
folder=$1 configuration=$2
mkdir -p "$folder"
exec 9>>"$folder/.lock"; flock --timeout 60 9
if [ -f "$configuration" ]; then
  if is_active && [ -z "$(except "$(wanted "$configuration")" "$(listening)")" ]; then echo "serves=yes"; fi
  echo "digest=$(sha256sum <"$configuration" | cut -d' ' -f1)"
fi
cd "$folder"
for file in *.json; do
  if [ -f "$file" ]; then printf '%s=' "${file%.json}"; tr -d '\\n' <"$file"; echo; fi
done
"""
_CHANGE = """\
folder=$1 configuration=$2 known=$3 name=$4
umask 077
exec 9>>"$folder/.lock"; flock --timeout 60 9
found=$(cd "$folder"; for file in *.json; do
  if [ -f "$file" ]; then printf '%s=' "${file%.json}"; tr -d '\\n' <"$file"; echo; fi
done | sha256sum | cut -d' ' -f1)
if [ "$found" != "$known" ]; then exit 75; fi
read -r data
mkdir -p "$(dirname "$configuration")"
new=$(mktemp "$configuration.new.XXXXXXXX")
trap 'rm -f "$new"' EXIT
cat >"$new"
chmod 0644 "$new"
haproxy -c -q -f "$new"
new_ports=$(wanted "$new")
if [ -f "$configuration" ]; then old_ports=$(wanted "$configuration"); else old_ports=; fi
added=$(except "$new_ports" "$old_ports") withdrawn=$(except "$old_ports" "$new_ports")
taken=$(except "$added" "$(except "$added" "$(others)")")
if [ -n "$taken" ]; then echo "another program listens at port" $taken "there: see ss -ltnp" >&2; exit 1; fi
if [ -n "$data" ]; then
  printf '%s\\n' "$data" >"$folder/.new"
  mv -f "$folder/.new" "$folder/$name.json"
else
  rm -f "$folder/$name.json"
fi
if ! cmp -s "$new" "$configuration"; then mv -f "$new" "$configuration"; changed=yes; else changed=; fi
if ! is_active; then
  systemctl enable --quiet haproxy
  systemctl restart haproxy
else
  if [ -z "$changed" ]; then changed=$(except "$new_ports" "$(listening)"); fi
  if [ -n "$changed" ]; then systemctl reload haproxy; fi
fi
tries=0
until now=$(listening); [ -z "$(except "$new_ports" "$now")" ] && [ "$(except "$withdrawn" "$now")" = "$withdrawn" ]; do
  tries=$((tries + 1))
  if [ "$tries" -gt 100 ]; then echo "HAProxy does not take its configuration: see journalctl -u haproxy there" >&2; exit 1; fi
  sleep 0.1
done
"""
_HEAD = """\
# Written by a management driver of k8s-cr-driver: changes are lost.
global
  log /dev/log local0
defaults
  log global
  mode tcp
  option redispatch
  retries 3
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout client-fin 30s
frontend alive
  bind 127.0.0.1:8404
  mode http
  monitor-uri /alive
"""
_API = """\
frontend api
  bind *:{port}
  default_backend api
backend api
  balance roundrobin
  option httpchk GET /readyz
  default-server check check-ssl verify none inter 1s fall 2 rise 1
{servers}"""
_SERVICE = """\
frontend port-{port}
  bind *:{port}
  default_backend port-{port}
backend port-{port}
  balance roundrobin
  default-server check inter 2s fall 2 rise 1
{servers}"""


@dataclass(frozen=True)
class Balancer:
    """What is on the load balancer."""

    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """CLUSTER, and the names of the CNFs -> their entries."""
    digest: str = ""
    """Of its configuration."""
    serves: bool = False
    """HAProxy runs, and nothing is missing at the ports of its configuration."""
    known: str = ""
    """The digest of all data, as a change has to find them."""


def of_cluster(inventory: Inventory, node_ports: Sequence[int]) -> Mapping[str, Any]:
    """The entries of a cluster."""
    nodes = [{"name": node.name, "address": node.address} for node in inventory.nodes]
    masters = [node.name for node in inventory.masters]
    return {"api_port": inventory.endpoint.port, "masters": masters, "nodes": nodes, "node_ports": sorted(set(node_ports))}


def of_cnf(node_ports: Sequence[int]) -> Mapping[str, Any]:
    """The entries of a CNF; {} withdraws them."""
    return {"node_ports": sorted(set(node_ports))} if node_ports else {}


def look() -> Command:
    return script("the look at the load balancer", _PORTS + _LOOK, _DATA, HAPROXY, within=90)


def read(output: str) -> Balancer:
    """Of what `look` prints. Raises DriverError for data that nobody has written so."""
    lines = dict(line.partition("=")[::2] for line in output.splitlines())
    serves, digest = lines.pop("serves", ""), lines.pop("digest", "")
    listing = "".join(f"{line}\n" for line in output.splitlines() if line.partition("=")[0] in lines)
    try:
        data = {name: mapping(json.loads(content)) for name, content in lines.items()}
    except (ValueError, RecursionError):
        raise DriverError(f"the data of the load balancer cannot be read; remove what is broken in {_DATA} there") from None
    return Balancer(data, digest, serves == "yes", hashlib.sha256(listing.encode()).hexdigest())


def with_entries(found: Balancer, name: str, entries_of: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """All data with other entries of `name`; {} removes them. Raises InvalidRequest for a port of others."""
    data = {key: value for key, value in found.data.items() if key != name}
    if entries_of:
        data[name] = entries_of
    taken: dict[int, str] = {}
    if port := mapping(data, CLUSTER).get("api_port"):
        taken[port] = "the API"
    for owner in sorted(data, key=lambda one: (one == name, one)):
        for port in sequence(data[owner], "node_ports"):
            if port in taken:
                raise InvalidRequest(f"the load balancer has {taken[port]} at port {port}, so {owner} cannot be there")
            taken[port] = owner
    return data


def configuration(data: Mapping[str, Mapping[str, Any]]) -> str:
    """HAProxy's, whole. A NodePort is open on every node, so each node is a server of each.

    It has no `maxconn`: HAProxy takes what the server's limit of open files permits, and does not start with more.
    """
    cluster = mapping(data, CLUSTER)
    nodes = [(text(one, "name"), text(one, "address")) for one in entries(cluster, "nodes")]
    masters = set(sequence(cluster, "masters"))
    workers = [one for one in nodes if one[0] not in masters] or nodes
    parts = [_HEAD]
    if cluster:
        apis = (f"{name} {address}:{API_SERVER_PORT} {LET_GO}" for name, address in nodes if name in masters)
        servers = "".join(f"  server {one}\n" for one in apis)
        parts.append(_API.format(port=cluster["api_port"], servers=servers))
    for port in sorted(port for one in data.values() for port in sequence(one, "node_ports")):
        servers = "".join(f"  server {name} {address}:{port}\n" for name, address in workers)
        parts.append(_SERVICE.format(port=port, servers=servers))
    return "".join(parts)


def is_right(found: Balancer, name: str, entries_of: Mapping[str, Any]) -> bool:
    """Whether nothing is to be changed. Raises InvalidRequest."""
    data = with_entries(found, name, entries_of)
    digest = hashlib.sha256(configuration(data).encode()).hexdigest()
    return found.serves and data == found.data and digest == found.digest


def change(found: Balancer, name: str, entries_of: Mapping[str, Any]) -> Command:
    """
    Writes the entries of `name` and the configuration, and reloads HAProxy. Waits for its new ports, and the end of others.

    Ends with CHANGED where `found` is outdated; with an error before anything is written if another program has a new port.
    """
    content = configuration(with_entries(found, name, entries_of))
    data = json.dumps(entries_of, sort_keys=True) if entries_of else ""
    args = (_DATA, HAPROXY, found.known, name)
    return script("the change of the load balancer", _PORTS + _CHANGE, *args, stdin=f"{data}\n{content}", within=90)


def changed(run: Callable[[Command], str], name: str, entries_of: Mapping[str, Any]) -> bool:
    """
    The load balancer has these entries of `name` afterwards; whether that was a change.

    run: runs a command on the load balancer. Raises DriverError, InvalidRequest for a port of others.
    """
    for _ in range(TRIES - 1):
        found = read(run(look()))
        if is_right(found, name, entries_of):
            return False
        try:
            run(change(found, name, entries_of))
        except CommandFailed as error:
            if error.exit_status != CHANGED:
                raise
        else:
            return True
    run(change(read(run(look())), name, entries_of))
    return True
