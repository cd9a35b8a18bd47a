# SPDX-License-Identifier: Apache-2.0
"""A server of the cloud is a machine: it boots with its user data, is where its addresses say, and goes when it is deleted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import openstack

from builds import commands

from ..testbed.bed import Environment
from ..testbed.openstack import network, offer
from .conftest import PAGE, PORT, MakeServer, Site, eventually
from .servers import attempt, console_with, machine, page

Reach = Callable[[str], str]


def port_of(tenant: openstack.connection.Connection, server: str) -> str:
    return str(next(iter(tenant.network.ports(device_id=server))).id)


def test_a_server_boots_with_its_user_data_and_goes_when_it_is_deleted(
    bed: Environment, tenant: openstack.connection.Connection, site: Site, reach: Reach, tmp_path: Path
):
    file = tmp_path / "user-data"
    file.write_text(PAGE)
    created = client(
        bed, "server", "create", "--image=debian", "--flavor=small", f"--network={site.network}",
        f"--security-group={site.group}", f"--user-data={file}", "--wait", "first",
    )  # fmt: skip
    identifier = json.loads(created)["id"]
    address = reach(port_of(tenant, identifier))
    assert eventually(lambda: page(address), "the server responds") == f"first {identifier}"
    eventually(lambda: "cloud-init" in client(bed, "console", "log", "show", identifier), "the console shows cloud-init")
    client(bed, "server", "delete", "--wait", identifier)
    assert not machine(identifier).home.exists()
    assert not network.has_namespace(network.server_namespace(identifier))
    assert page(address) == ""


def client(bed: Environment, *arguments: str) -> str:
    """The stdout of `openstack`, as the tenant: variables with which Tacker's clients log in would come before the cloud."""
    file = "OS_CLIENT_CONFIG_FILE"
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OS_")} | {file: bed[file]}
    program = Path(sys.executable).with_name("openstack")
    form = () if arguments[0] == "console" or arguments[1] == "delete" else ("--format=json",)
    return commands.run([program, f"--os-cloud={offer.OTHER}", *arguments, *form], env=variables)


def test_what_no_rule_allows_does_not_reach_a_server(
    tenant: openstack.connection.Connection, site: Site, make_server: MakeServer, reach: Reach
):
    server = make_server("guarded")
    address = reach(port_of(tenant, server.id))
    eventually(lambda: page(address), "the server responds")
    [rule] = tenant.network.security_group_rules(security_group_id=site.group, direction="ingress")
    tenant.network.delete_security_group_rule(rule)
    try:
        eventually(lambda: not page(address), "the server does not respond any more")
    finally:
        tenant.network.create_security_group_rule(
            security_group_id=site.group, direction="ingress", ethertype="IPv4", protocol="tcp", port_range_min=PORT,
            port_range_max=PORT,
        )  # fmt: skip
    eventually(lambda: page(address), "the server responds again")


def test_servers_reach_each_other_and_the_outside_as_their_router(
    tenant: openstack.connection.Connection, make_server: MakeServer, reach: Reach, bed: Environment
):
    one, other = make_server("one"), make_server("other")
    inside = next(iter(other.addresses.values()))[0]["addr"]
    fetch = ("python3", "-c", f"import urllib.request as u; print(u.urlopen('http://{inside}:{PORT}', timeout=2).read())")
    assert other.id in eventually(lambda: attempt(one.id, *fetch), "a server reaches the other by its address")
    floating = reach(port_of(tenant, one.id))
    fetch = ("python3", "-c", f"import urllib.request as u; print(u.urlopen('http://{floating}:{PORT}', timeout=2).read())")
    assert one.id in eventually(lambda: attempt(one.id, *fetch), "a server reaches itself by its floating IP")
    url = tenant.config.get_auth_args()["auth_url"]
    fetch = ("python3", "-c", f"import urllib.request as u; print(u.urlopen('{url}', timeout=5).status)")
    assert eventually(lambda: attempt(other.id, *fetch), "a server without a floating IP reaches Keystone") == "200\n"


def test_stop_start_and_reboot_follow_the_api_and_keep_the_disk(
    tenant: openstack.connection.Connection, make_server: MakeServer, reach: Reach
):
    server = make_server("kept")
    address = reach(port_of(tenant, server.id))
    eventually(lambda: page(address), "the server responds")
    machine(server.id).run("sh", "-c", "echo kept > /var/lib/kept")
    tenant.compute.stop_server(server)
    tenant.compute.wait_for_server(server, status="SHUTOFF", interval=0.2, wait=60)
    assert not machine(server.id).is_on()
    tenant.compute.start_server(server)
    tenant.compute.wait_for_server(server, interval=0.2, wait=60)
    assert eventually(lambda: attempt(server.id, "cat", "/var/lib/kept"), "it is up") == "kept\n"
    before = machine(server.id).life()
    tenant.compute.reboot_server(server, "HARD")
    eventually(lambda: machine(server.id).life() not in ("", before), "it has been turned on again")
    tenant.compute.wait_for_server(server, interval=0.2, wait=60)
    assert eventually(lambda: attempt(server.id, "cat", "/var/lib/kept"), "it is up again") == "kept\n"


def test_a_machine_that_dies_is_seen_in_the_api(tenant: openstack.connection.Connection, make_server: MakeServer):
    server = make_server("dying")
    machine(server.id).cut_off()
    tenant.compute.wait_for_server(server, status="SHUTOFF", interval=0.5, wait=90)


def test_a_volume_is_a_disk_of_the_running_machine(tenant: openstack.connection.Connection, make_server: MakeServer):
    server = make_server("storing")
    volume = tenant.block_storage.create_volume(size=1, name="data")
    tenant.block_storage.wait_for_status(volume, "available", interval=0.2, wait=60)
    attached = tenant.compute.create_volume_attachment(server, volume_id=volume.id)
    tenant.block_storage.wait_for_status(volume, "in-use", interval=0.2, wait=60)
    size = eventually(lambda: attempt(server.id, "blockdev", "--getsize64", attached.device), "the disk is there")
    assert int(size) == 1 << 30
    tenant.compute.delete_volume_attachment(server, volume.id)
    tenant.block_storage.wait_for_status(volume, "available", interval=0.2, wait=60)
    assert volume.id not in commands.run(["losetup", "--list"])
    tenant.block_storage.delete_volume(volume)


def test_what_fails_in_the_machine_can_be_seen(tenant: openstack.connection.Connection, make_server: MakeServer):
    server = make_server("failing", user_data="#cloud-config\nruncmd:\n- [sh, -c, 'echo no kubelet; exit 7']\n")
    output = eventually(lambda: console_with(tenant, server.id, "no kubelet"), "the console shows the command's output")
    assert "Failed" in output or "failed" in output
