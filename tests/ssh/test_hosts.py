# SPDX-License-Identifier: Apache-2.0
"""Commands and files over a real SSH connection."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from asyncssh.channel import MSG_CHANNEL_CLOSE

from k8s_cr_driver.errors import NotPermitted
from k8s_cr_driver.ssh import files
from k8s_cr_driver.ssh.command import Command, script
from k8s_cr_driver.ssh.files import File
from k8s_cr_driver.ssh.host import CommandFailed, HostError, NotTrusted, OutOfTime, Unreachable, last_lines
from k8s_cr_driver.ssh.hosts import Hosts

from .server import Server, another_key, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as one:
        yield one


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(lambda _: None) as one:
        yield one


def test_a_command_gets_its_arguments_and_input_as_they_are(server: Server, hosts: Hosts) -> None:
    nasty = """a b'; echo "$HOME" `id` \\ $(reboot)"""
    command = script("a look", 'printf "%s|" "$1"; cat', nasty, stdin="ü\nsecond")
    assert hosts.run(server.host(), command) == f"{nasty}|ü\nsecond"


def test_a_command_may_end_before_it_has_read_its_input(server: Server, hosts: Hosts) -> None:
    for _ in range(20):
        assert hosts.run(server.host(), Command("a look", ("echo", "done"), stdin="x" * 100_000)) == "done\n"


def test_commands_share_one_connection(server: Server, hosts: Hosts) -> None:
    before, host = server.logins, server.host()
    for _ in range(3):
        hosts.run(host, Command("a look", ("true",)))
    assert (hosts.connections, server.logins - before) == (1, 1)


def test_a_failure_names_the_node_the_step_and_the_last_lines_without_secrets(server: Server, hosts: Hosts) -> None:
    text = 'i=0; while [ $i -lt 20 ]; do echo "line $i"; i=$((i + 1)); done; echo "token is $1" >&2; exit 3'
    with pytest.raises(CommandFailed) as failure:
        hosts.run(server.host(), script("kubeadm join", text, "abcdef.0123", secrets=("abcdef.0123",)))
    said = str(failure.value)
    assert said.startswith("node-1 (127.0.0.1): kubeadm join ended with status 3:")
    assert "line 19" in said
    assert "line 1 " not in said
    assert "abcdef.0123" not in said


def test_commands_end_at_the_deadline_of_the_operation(server: Server) -> None:
    with Hosts(lambda _: None, time.monotonic() + 1) as hosts:
        for command in (Command("a drain", ("sleep", "3"), within=600), Command("a look", ("true",))):
            with pytest.raises(OutOfTime, match=rf"the time limit of the operation has passed at {command.what}; retry it"):
                hosts.run(server.host(), command)
    assert hosts.connections <= 1


def test_a_command_that_hangs_ends_at_its_deadline(server: Server, hosts: Hosts) -> None:
    with pytest.raises(CommandFailed, match="did not end before its deadline"):
        hosts.run(server.host(), Command("a drain", ("sleep", "600"), within=0.3))


def test_a_deadline_does_not_wait_for_the_server(server: Server, hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSH's server closes its side of a channel when the command ends, and not when the client has closed its own."""
    channel = asyncssh.channel.SSHServerChannel
    deaf = {**channel._packet_handlers, MSG_CHANNEL_CLOSE: lambda *_: None}
    monkeypatch.setattr(channel, "_packet_handlers", deaf)
    started = time.monotonic()
    with pytest.raises(CommandFailed, match="a drain did not end before its deadline"):
        hosts.run(server.host(), Command("a drain", ("sleep", "600"), within=0.3))
    assert time.monotonic() - started < 10


def test_a_server_that_compresses_is_refused(hosts: Hosts) -> None:
    """A packet of 256 KiB would become one of 256 MiB before anything counts it. Whichever side sees it first ends it."""
    said = r"no connection to port \d+: (.*compression|Connection lost)"
    with serving(compression=["zlib@openssh.com"]) as one, pytest.raises(Unreachable, match=said):
        hosts.run(one.host(), Command("a look", ("true",)))


def test_a_command_that_floods_is_ended(server: Server, hosts: Hosts) -> None:
    with pytest.raises(HostError, match="printed more than 4 MiB and was ended"):
        hosts.run(server.host(), Command("the script", ("yes",)))


def test_a_changed_host_key_is_refused_with_what_to_do(server: Server, hosts: Hosts) -> None:
    with pytest.raises(NotTrusted, match=r"none of those it may have. If the server was replaced outside of Tacker, heal"):
        hosts.run(server.host(trusted=(another_key(),)), Command("a look", ("true",)))


def test_a_host_without_a_known_key_is_refused(server: Server, hosts: Hosts) -> None:
    with pytest.raises(NotTrusted):
        hosts.run(server.host(trusted=()), Command("a look", ("true",)))


@pytest.mark.parametrize(("principals", "is_trusted"), [((), True), (("127.0.0.1",), True), (("node-2",), False)])
def test_an_authority_may_have_signed_the_key_of_a_host(principals: tuple[str, ...], is_trusted: bool, hosts: Hosts) -> None:
    """A certificate that names hosts is one of these only."""
    with serving(principals) as one:
        host = one.host(trusted=(), authorities=(one.authority,))
        if is_trusted:
            assert hosts.run(host, Command("a look", ("echo", "in"))) == "in\n"
        else:
            with pytest.raises(NotTrusted):
                hosts.run(host, Command("a look", ("true",)))
        with pytest.raises(NotTrusted):
            hosts.run(one.host(trusted=(), authorities=(another_key(),)), Command("a look", ("true",)))


def test_a_key_comes_before_a_password_and_either_is_enough(server: Server, hosts: Hosts) -> None:
    for host in (server.host(password="wrong"), server.host(private_key="", password="right")):
        assert hosts.run(host, Command("a look", ("echo", "in"))) == "in\n"


def test_a_wrong_user_or_password_is_no_passing_failure(server: Server, hosts: Hosts) -> None:
    with pytest.raises(HostError, match="refuses the login of admin: check the user, and the key or password") as failure:
        hosts.run(server.host(private_key="", password="guessed"), Command("a look", ("true",)))
    assert not isinstance(failure.value, Unreachable)
    assert "guessed" not in str(failure.value)


def test_no_server_is_a_passing_failure(server: Server, hosts: Hosts) -> None:
    with pytest.raises(Unreachable, match="no connection to port 1"):
        hosts.run(server.host(port=1), Command("a look", ("true",)))


def test_an_address_that_is_not_permitted_is_not_connected_to(server: Server) -> None:
    def judge(address: str) -> None:
        raise NotPermitted(f"{address}: not allowed")

    before = server.logins
    with Hosts(judge) as hosts, pytest.raises(NotPermitted):
        hosts.run(server.host(), Command("a look", ("true",)))
    assert server.logins == before


def test_a_file_is_replaced_whole_and_stays_when_its_check_fails(server: Server, hosts: Hosts, tmp_path: Path) -> None:
    path = tmp_path / "etc" / "haproxy.cfg"
    right = File(str(path), "right\n", mode="0640", check=("grep", "--quiet", "right"))
    hosts.run(server.host(), files.replace(right))
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("right\n", 0o640)
    with pytest.raises(CommandFailed, match=r"the new .*haproxy\.cfg ended with status 1"):
        hosts.run(server.host(), files.replace(File(str(path), "wrong\n", check=("grep", "--quiet", "right"))))
    assert path.read_text() == "right\n"
    assert [one.name for one in path.parent.iterdir()] == ["haproxy.cfg"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == right.digest


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_a_command_whose_input_is_cut_does_nothing(server: Server, tmp_path: Path, part: float) -> None:
    """sshd(8) ends the input of a command when the conductor dies, as if that were all of it."""
    path, before, after = tmp_path / "fstab", "UUID=1 / ext4\n", "UUID=1 / ext4\nUUID=2 /volume ext4 ü\n\n"
    path.write_text(before)
    command = files.replace(File(str(path), after))

    async def cut() -> None:
        key = asyncssh.import_private_key(server.host().private_key)
        options: dict[str, Any] = {"username": "admin", "client_keys": [key], "known_hosts": None, "config": None}
        async with asyncssh.connect("127.0.0.1", server.port, **options) as connection:
            process: Any = await connection.create_process(command.line, encoding=None)
            whole = command.stdin.encode()
            process.stdin.write(whole[: int(part * len(whole))])
            process.stdin.write_eof()
            await process.wait()

    asyncio.run(cut())
    assert path.read_text() == (after if part == 1 else before)


LINES = [f"MIIEpAIBAAKCAQEA{line:054}" for line in range(20)]
KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *LINES, "-----END RSA PRIVATE KEY-----"])


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (f"before\n{KEY}\nafter\n", "before | [removed] | after"),
        (f"before\n{KEY[40:]}\nafter\n", "[removed] | after"),
        (f"before\n{KEY[:400]}", "before | [removed]"),
        (f"+ cat key\n+ {KEY}\n{KEY}\nafter", "+ cat key | [removed] | [removed] | after"),
        ("a\nb", "a | b"),
    ],
    ids=["whole", "its end", "its begin", "two", "none"],
)
def test_no_part_of_a_private_key_is_among_the_last_lines(output: str, said: str) -> None:
    assert last_lines(output) == said
