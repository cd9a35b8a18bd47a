# SPDX-License-Identifier: Apache-2.0
"""A real SSH server on loopback, whose commands run in a shell of this host without `sudo`."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import asyncssh

from k8s_cr_driver.ssh.host import Host


@dataclass
class Server:
    """The server; `logins` counts its connections."""

    port: int = 0
    key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    user_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    signing_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    """Of the authority that has signed the key, if one has."""
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    refused: int = 0
    """Connections, from the first, in which nobody may log in."""
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    environment: dict[str, str] | None = None
    """Of the commands; that of the tests by default."""
    root: str = ""
    """The folder that commands see as `/`, as far as their paths begin with one of `paths`."""
    paths: tuple[str, ...] = ()

    def inside(self, command: str) -> str:
        """The command with its paths below `root`."""
        if not self.root:
            return command
        found = "|".join(map(re.escape, self.paths))
        return re.sub(rf"(?<![\w.-])({found})", rf"{self.root}\1", command)

    @property
    def public_key(self) -> str:
        return _line(self.key)

    @property
    def logins(self) -> int:
        return len(self.connections)

    @property
    def authority(self) -> str:
        return _line(self.signing_key)

    def host(self, **changes: object) -> Host:
        """How the server is reached; `changes` are fields of it."""
        private = self.user_key.export_private_key().decode()
        given = {"trusted": (self.public_key,), "private_key": private, "port": self.port, **changes}
        return Host("node-1", "127.0.0.1", "admin", **given)  # type: ignore[arg-type]


def _line(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key().decode().split()[:2])


def another_key() -> str:
    """A public key of somebody else."""
    return _line(asyncssh.generate_private_key("ssh-ed25519"))


class Authentication(asyncssh.SSHServer):
    """Takes the user `admin` with the server's user key, or the password `right`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._server.connections.append(conn)
        self._may = self._server.logins > self._server.refused

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return self._may and username == "admin" and _line(key) == _line(self._server.user_key)

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("admin", "right")


async def _run(server: Server, process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Threads read and wait, so that the end of a test leaves no transport of asyncio behind."""
    command = server.inside((process.command or "").removeprefix("sudo --non-interactive -- "))
    given = await process.stdin.read()
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        pipes: dict[str, Any] = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": stderr, "env": server.environment}
        with subprocess.Popen(["sh", "-c", command], start_new_session=True, **pipes) as child:
            server.children.append(child)
            assert child.stdout is not None
            try:
                while part := await asyncio.to_thread(os.read, child.stdout.fileno(), 65536):
                    process.stdout.write(part.replace(server.root.encode(), b"") if server.root else part)
                    await process.stdout.drain()
                status = await asyncio.to_thread(child.wait)
            finally:
                _kill(child)
        stderr.seek(0)
        process.stderr.write(stderr.read().replace(server.root.encode(), b"") if server.root else stderr.read())
    process.exit(status)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """With what the shell has started: it would hold the pipe that a thread reads, and the tests would not end before it."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@contextmanager
def serving(
    principals: Sequence[str] | None = None, address: str = "127.0.0.1", port: int = 0, compression: Sequence[str] = ("none",)
) -> Iterator[Server]:
    """The server runs in a loop of its own. `principals`: those of the certificate of its key; without any, all hosts."""
    one, loop = Server(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen() -> asyncssh.SSHAcceptor:
        run = functools.partial(_run, one)
        authentication = functools.partial(Authentication, one)
        options: dict[str, Any] = {"server_host_keys": [one.key]}
        if principals is not None:
            signed = one.signing_key.generate_host_certificate(one.key, "node-1", principals=principals)
            options = {"server_host_keys": [(one.key, signed)], "send_server_host_keys": False}
        options["compression_algs"] = list(compression)
        return await asyncssh.create_server(authentication, address, port, process_factory=run, encoding=None, **options)

    acceptor = asyncio.run_coroutine_threadsafe(listen(), loop).result(20)
    one.port = acceptor.get_port()

    async def close() -> None:
        for child in one.children:
            _kill(child)
        acceptor.close()
        for connection in one.connections:
            connection.abort()
        await asyncio.gather(*(connection.wait_closed() for connection in one.connections), return_exceptions=True)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(tasks, timeout=5) if tasks else None
        for task in tasks:
            task.cancel()

    try:
        yield one
    finally:
        asyncio.run_coroutine_threadsafe(close(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()
