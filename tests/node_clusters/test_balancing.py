# SPDX-License-Identifier: Apache-2.0
"""What HAProxy and keepalived are given: the words of their files that a failure would show."""

from __future__ import annotations

import re

from k8s_cr_driver.node_clusters.inventory import Endpoint
from k8s_cr_driver.node_clusters.kubeadm import balancing

from .clusters import ENDPOINT, INSTANCE, MASTERS

HAPROXY = balancing.haproxy(MASTERS, ENDPOINT)
KEEPALIVED = [balancing.keepalived(node, MASTERS, ENDPOINT, INSTANCE, "eth0") for node in MASTERS]


def test_haproxy_passes_tls_through_to_all_masters_that_are_ready() -> None:
    assert "mode tcp\n" in HAPROXY.content and "balance roundrobin\n" in HAPROXY.content
    assert re.findall(r"bind (\S+)", HAPROXY.content) == ["*:16443", "127.0.0.1:8404"], "its port is not the API server's"
    servers = [line.split() for line in HAPROXY.content.splitlines() if line.startswith("  server ")]
    expected = [["server", node.name, f"{node.address}:6443", "tcp-ut", "5s"] for node in MASTERS]
    assert servers == expected, "no master is a backup only"
    assert "option httpchk GET /readyz" in HAPROXY.content and "check-ssl" in HAPROXY.content


def test_connections_to_a_master_that_is_gone_end_and_those_of_other_masters_do_not() -> None:
    """By TCP. A shutdown of all its connections would cut those that only try it, and go on with another master."""
    servers = re.findall(r"  server (\S+) \S+ tcp-ut 5s\n", HAPROXY.content)
    assert servers == [node.name for node in MASTERS], "in default-server it is ignored"
    assert "shutdown-sessions" not in HAPROXY.content


def test_haproxy_has_no_page_and_no_password() -> None:
    """Statistics are open to whoever reaches the virtual IP."""
    assert not re.search(r"stats|auth|password|^\s*ssl crt", HAPROXY.content, re.MULTILINE)


def test_etcd_is_not_balanced() -> None:
    assert "2379" not in HAPROXY.content


def test_no_master_takes_the_virtual_ip_back_from_another() -> None:
    for one in KEEPALIVED:
        assert "state BACKUP\n" in one.content and "nopreempt\n" in one.content
    priorities = [int(re.findall(r"priority (\d+)", one.content)[0]) for one in KEEPALIVED]
    assert priorities == [103, 102, 101]


def test_the_masters_of_an_instance_have_one_router_of_their_own() -> None:
    routers = {re.findall(r"virtual_router_id (\d+)", one.content)[0] for one in KEEPALIVED}
    assert routers == {str(balancing.router_id(INSTANCE))}
    assert len({balancing.router_id(str(number)) for number in range(200)}) > 100
    assert all(1 <= balancing.router_id(str(number)) <= 255 for number in range(200))


def test_each_master_has_one_peer_a_line() -> None:
    """Of a line keepalived takes the first address only: then two masters have the virtual IP."""
    for node, one in zip(MASTERS, KEEPALIVED, strict=True):
        block = one.content.partition("unicast_peer {\n")[2].partition("}")[0]
        assert [line.split() for line in block.splitlines() if line.strip()] == [
            [other.address] for other in MASTERS if other != node
        ]
        assert f"unicast_src_ip {node.address}\n" in one.content


def test_keepalived_asks_the_haproxy_beside_it_and_no_api() -> None:
    """`pidof` may be another program, and a look through to the API takes the virtual IP from all masters at once."""
    [script] = re.findall(r'script "(.*)"', KEEPALIVED[0].content)
    assert script.endswith("http://127.0.0.1:8404/alive") and script.startswith("/usr/bin/curl ")
    assert "monitor-uri /alive" in HAPROXY.content


def test_the_address_is_that_of_the_port_with_its_interface() -> None:
    found = balancing.keepalived(MASTERS[0], MASTERS, Endpoint("10.9.0.7", "198.51.100.7", 16443), INSTANCE, "ens3")
    assert "10.9.0.7/32 dev ens3\n" in found.content and "interface ens3\n" in found.content


def test_each_file_is_judged_before_it_is_there() -> None:
    assert HAPROXY.check[:2] == ("haproxy", "-c")
    assert KEEPALIVED[0].check[:2] == ("keepalived", "--config-test")
    assert KEEPALIVED[0].mode == "0600"
