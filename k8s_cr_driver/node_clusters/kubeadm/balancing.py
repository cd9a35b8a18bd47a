# SPDX-License-Identifier: Apache-2.0
"""HAProxy and keepalived, on each master or on servers outside: the API servers of all masters behind one virtual IP.

keepalived asks only whether the HAProxy beside it is alive, and HAProxy judges the API servers. A check through to the API
would take the virtual IP from all masters when the API fails on all. TLS passes through HAProxy unread. etcd is not balanced:
each API server uses the etcd member of its own master, and etcd's members know each other.

VRRP 3 has no passwords (RFC 5798, section 9): unicast between the servers, and the ports' allowed addresses, take their place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from k8s_cr_driver.node_clusters.inventory import Endpoint, Node
from k8s_cr_driver.node_clusters.parameters import API_SERVER_PORT as API_SERVER_PORT
from k8s_cr_driver.ssh.files import File

HAPROXY, KEEPALIVED = "/etc/haproxy/haproxy.cfg", "/etc/keepalived/keepalived.conf"
UNITS = {HAPROXY: "haproxy", KEEPALIVED: "keepalived"}
"""The service that reads each file."""
LET_GO = "tcp-ut 5s"
"""Of a connection to an API server: it ends if what was sent is not acknowledged. HAProxy ignores it in `default-server`.

`on-marked-down shutdown-sessions` would cut those, too, that only try an API server, and would go on with another one.
"""
_ALIVE = 8404

_HAPROXY = """\
# Written by the management driver ha_masters: changes are lost.
global
  log /dev/log local0
  maxconn 4000
defaults
  log global
  mode tcp
  option redispatch 1
  retries 3
  timeout connect 500ms
  timeout client 1h
  timeout server 1h
frontend api
  bind *:{port}
  default_backend api
backend api
  balance roundrobin
  option httpchk GET /readyz
  default-server check check-ssl verify none inter 500ms fall 2 rise 1
{servers}frontend alive
  bind 127.0.0.1:{alive}
  mode http
  monitor-uri /alive
"""
_KEEPALIVED = """\
# Written by the management driver ha_masters: changes are lost.
global_defs {{
  vrrp_version 3
  enable_script_security
  script_user root
}}
vrrp_script alive {{
  script "/usr/bin/curl --silent --fail --max-time 1 --output /dev/null http://127.0.0.1:{alive}/alive"
  interval 1
  timeout 1
  fall 1
  rise 2
}}
vrrp_instance api {{
  state BACKUP
  nopreempt
  interface {interface}
  virtual_router_id {router}
  priority {priority}
  advert_int 0.3
  unicast_src_ip {address}
  unicast_peer {{
{peers}  }}
  virtual_ipaddress {{
    {vip}/32 dev {interface}
  }}
  track_script {{
    alive
  }}
}}
"""


def router_id(instance: str) -> int:
    """The id of the virtual router, from 1 to 255: instances that share a network should differ."""
    return 1 + hashlib.sha256(instance.encode()).digest()[0] % 255


def haproxy(masters: Sequence[Node], endpoint: Endpoint) -> File:
    """The same on each server."""
    servers = "".join(f"  server {one.name} {one.address}:{API_SERVER_PORT} {LET_GO}\n" for one in masters)
    content = _HAPROXY.format(port=endpoint.port, servers=servers, alive=_ALIVE)
    return File(HAPROXY, content, check=("haproxy", "-c", "-q", "-f"))


def keepalived(node: Node, balancing: Sequence[Node], endpoint: Endpoint, instance: str, interface: str) -> File:
    """Of one of the servers that balance. Each has one peer a line: a second one on the line would be ignored."""
    peers = "".join(f"    {one.address}\n" for one in balancing if one != node)
    content = _KEEPALIVED.format(
        alive=_ALIVE,
        interface=interface,
        router=router_id(instance),
        priority=100 + len(balancing) - balancing.index(node),
        address=node.address,
        peers=peers,
        vip=endpoint.address,
    )
    return File(KEEPALIVED, content, mode="0600", check=("keepalived", "--config-test", "--use-file"))
