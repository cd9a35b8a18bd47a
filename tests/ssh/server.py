# SPDX-License-Identifier: Apache-2.0
"""A real SSH server on loopback, whose commands run in a shell of this host without `sudo`."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import asyncssh

from k8s_cr_driver.ssh.host import Host


@dataclass
class Server:
    """The server; `logins` counts its connections."""

    port: int = 0
    key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    user_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    logins: int = 0
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def public_key(self) -> str:
        return _line(self.key)

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
        self._server.logins += 1

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == "admin" and _line(key) == _line(self._server.user_key)

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("admin", "right")


async def _run(server: Server, process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Threads read and wait, so that the end of a test leaves no transport of asyncio behind."""
    command = (process.command or "").removeprefix("sudo --non-interactive -- ")
    given = await process.stdin.read()
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        with subprocess.Popen(["sh", "-c", command], stdin=stdin, stdout=subprocess.PIPE, stderr=stderr) as child:
            server.children.append(child)
            assert child.stdout is not None
            try:
                while part := await asyncio.to_thread(os.read, child.stdout.fileno(), 65536):
                    process.stdout.write(part)
                    await process.stdout.drain()
                status = await asyncio.to_thread(child.wait)
            finally:
                child.kill()
        stderr.seek(0)
        process.stderr.write(stderr.read())
    process.exit(status)


@contextmanager
def serving() -> Iterator[Server]:
    """The server runs in a loop of its own."""
    one, loop = Server(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen() -> asyncssh.SSHAcceptor:
        run = functools.partial(_run, one)
        authentication = functools.partial(Authentication, one)
        return await asyncssh.create_server(
            authentication, "127.0.0.1", 0, server_host_keys=[one.key], process_factory=run, encoding=None
        )

    acceptor = asyncio.run_coroutine_threadsafe(listen(), loop).result(20)
    one.port = acceptor.get_port()

    async def close() -> None:
        for child in one.children:
            child.kill()
        acceptor.close()
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
