# SPDX-License-Identifier: Apache-2.0
"""What the cloud's network makes of the objects of Neutron and Octavia."""

from typing import Any

from functional_tests.testbed.openstack import balancing, routing, security
from functional_tests.testbed.openstack.view import View

PORT: dict[str, Any] = {
    "id": "port", "port_security_enabled": True, "security_groups": ["web"], "fixed_ips": [{"ip_address": "10.6.0.5"}],
    "allowed_address_pairs": [{"ip_address": "10.6.0.9"}],
}  # fmt: skip


def rule(**fields: Any) -> dict[str, Any]:
    defaults = dict.fromkeys(("protocol", "port_range_min", "port_range_max", "remote_group_id", "remote_ip_prefix"))
    return {"direction": "ingress", "ethertype": "IPv4", **defaults, **fields}


def table(*rules: dict[str, Any], **members: list[str]) -> list[str]:
    text = security.rules([PORT], {"web": {"security_group_rules": list(rules)}}, members)
    return [line.strip() for line in text.splitlines()]


def test_a_port_without_rules_receives_only_replies():
    lines = table()
    ingress = lines[: lines.index("}")]
    assert ingress[2:] == ['iifname "eth0" ct state established,related accept', 'iifname "eth0" drop']


def test_a_rule_with_ports_and_a_prefix():
    allowed = rule(protocol="tcp", port_range_min=22, port_range_max=23, remote_ip_prefix="192.0.2.0/24")
    assert 'iifname "eth0" ip saddr 192.0.2.0/24 tcp dport 22-23 accept' in table(allowed)


def test_a_rule_for_a_group_lets_its_members_in_and_nobody_when_it_has_none():
    allowed = rule(remote_group_id="peers")
    assert 'iifname "eth0" ip saddr { 10.6.0.6, 10.6.0.7 }  accept' in table(allowed, peers=["10.6.0.7", "10.6.0.6"])
    assert table(allowed) == table()


def test_a_port_sends_from_its_own_addresses_and_those_that_it_is_allowed():
    assert 'oifname "eth0" ip saddr != { 10.6.0.5, 10.6.0.9 } drop' in table()


def test_a_port_without_security_has_no_rules():
    open_port = {**PORT, "port_security_enabled": False}
    assert "drop" not in security.rules([open_port], {}, {})


def test_a_router_translates_floating_ips_both_ways_and_the_rest_to_its_own_address():
    text = routing.rules("198.51.100.2", {"198.51.100.9": "10.6.0.5"}, translates=True)
    for line in (
        "ip daddr 198.51.100.9 dnat to 10.6.0.5",
        'oifname "qg-*" ip saddr 10.6.0.5 snat to 198.51.100.9',
        'oifname "qg-*" snat to 198.51.100.2',
    ):
        assert line in text
    assert 'oifname "qg-*" snat to 198.51.100.2' not in routing.rules("198.51.100.2", {}, translates=False)


def test_a_load_balancer_listens_for_the_pools_that_it_has():
    pool = {"id": "pool", "healthmonitor_id": "check", "lb_algorithm": "ROUND_ROBIN"}
    listener = {"id": "api", "loadbalancers": [{"id": "lb"}], "default_pool_id": "pool", "protocol_port": 6443}
    member = {"id": "one", "address": "10.6.0.5", "protocol_port": 6443, "admin_state_up": True}
    view = View({}, {}, {}, {}, {}, {}, {}, {"api": listener}, {"pool": pool}, {"pool": [member]})
    text = balancing.configuration(view, {"id": "lb", "vip_address": "10.6.0.3"})
    assert "bind 10.6.0.3:6443" in text
    assert "server one 10.6.0.5:6443 check" in text
    assert "frontend" not in balancing.configuration(view, {"id": "other", "vip_address": "10.6.0.4"})


def test_a_port_sends_replies_only_from_its_own_addresses():
    lines = table()
    egress = lines[lines.index("}") + 1 :]
    drop = 'oifname "eth0" ip saddr != { 10.6.0.5, 10.6.0.9 } drop'
    assert egress.index(drop) < egress.index('oifname "eth0" ct state established,related accept')
