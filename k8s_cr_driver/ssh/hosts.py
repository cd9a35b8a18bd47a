# SPDX-License-Identifier: Apache-2.0
"""Connections to hosts, one each, opened when first needed; every call blocks until its deadline at most.

asyncssh does the protocol in an event loop of its own thread. A connection goes only to an address that `judge` accepts, and
only to a host whose key is known. Agents, forwarding, and files of the conductor's user are not used.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import asyncssh

from k8s_cr_driver.redaction import words
from k8s_cr_driver.ssh.command import OUTPUT_LIMIT, Command
from k8s_cr_driver.ssh.host import CommandFailed, Host, HostError, LoginRefused, NotTrusted, OutOfTime, Unreachable, without

T = TypeVar("T")

CONNECT_WITHIN = 10.0
"""Seconds for one connection with its login."""
KEEPALIVE = 10.0
"""Seconds between signs of life; after three without a response the connection is closed."""
_CHANGED = (
    "its host key is none of those it may have. If the server was replaced outside of Tacker, heal its VNFC; otherwise "
    "somebody else may respond at its address"
)

_OUT_OF_TIME = "{host}: the time limit of the operation has passed at {what}; retry it, perhaps with a longer wait-timeout"

Judge = Callable[[str], object]
"""Raises DriverError for an address to which no connection may go."""


class Hosts:
    """Use as a context manager. Safe for threads."""

    def __init__(self, judge: Judge, until: float = math.inf) -> None:
        """`until`: a time of time.monotonic() after which no command runs."""
        self.connections = 0
        """How many were opened."""
        self._until = until
        self._judge = judge
        self._open: dict[Host, asyncssh.SSHClientConnection] = {}
        self._locks: dict[Host, asyncio.Lock] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ssh", daemon=True)

    def __enter__(self) -> Hosts:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._close(), CONNECT_WITHIN)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CONNECT_WITHIN)
        self._loop.close()

    def run(self, host: Host, command: Command) -> str:
        """What the command printed on standard output.

        Raises CommandFailed, NotTrusted, Unreachable where the connection cannot be made or breaks, and OutOfTime.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise OutOfTime(_OUT_OF_TIME.format(what=command.what, host=host.name))
        limited = dataclasses.replace(command, within=min(command.within, left))
        try:
            return self._wait(self._run(host, limited), limited.within + 2 * CONNECT_WITHIN)
        except HostError:
            if time.monotonic() >= self._until:
                raise OutOfTime(_OUT_OF_TIME.format(what=command.what, host=host.name)) from None
            raise

    def _wait(self, work: Coroutine[Any, Any, T], within: float) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(within)
        except concurrent.futures.CancelledError:
            raise RuntimeError("the connections are closed") from None
        except BaseException:  # the deadline of the operation, too
            future.cancel()
            raise

    async def _run(self, host: Host, command: Command) -> str:
        connection = await self._connection(host)
        try:
            return await asyncio.wait_for(_output(connection, host, command), command.within)
        except asyncio.TimeoutError:
            raise CommandFailed(host, command.what, None, "") from None
        except (OSError, asyncssh.Error) as error:
            self._open.pop(host, None)
            raise Unreachable(host, f"the connection ended during {command.what}: {_words(error)}") from None

    async def _connection(self, host: Host) -> asyncssh.SSHClientConnection:
        async with self._locks.setdefault(host, asyncio.Lock()):
            known = self._open.get(host)
            if known is None or known.is_closed():
                self._judge(host.address)
                known = self._open[host] = await _connect(host)
                self.connections += 1
            return known

    async def _close(self) -> None:
        for connection in self._open.values():
            connection.abort()
        self._open.clear()


async def _connect(host: Host) -> asyncssh.SSHClientConnection:
    options: dict[str, Any] = {"client_keys": _private_keys(host), "password": host.password or None, "port": host.port}
    trusted, authorities = (list(map(asyncssh.import_public_key, keys)) for keys in (host.trusted, host.authorities))
    try:
        return await asyncssh.connect(
            host.address,
            username=host.user,
            known_hosts=(trusted, authorities, []),
            config=None,
            agent_path=None,
            compression_algs=None,  # asyncssh does not limit what a packet becomes
            connect_timeout=CONNECT_WITHIN,
            login_timeout=CONNECT_WITHIN,
            keepalive_interval=KEEPALIVE,
            **options,
        )
    except asyncssh.HostKeyNotVerifiable:
        raise NotTrusted(host, _CHANGED) from None
    except asyncssh.PermissionDenied:
        raise LoginRefused(host, f"it refuses the login of {host.user}: check the user, and the key or password") from None
    except (OSError, asyncssh.Error, asyncio.TimeoutError) as error:
        raise Unreachable(host, f"no connection to port {host.port}: {_words(error)}") from None


def _private_keys(host: Host) -> list[asyncssh.SSHKey] | None:
    if not host.private_key:
        return None
    try:
        return [asyncssh.import_private_key(host.private_key)]
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        raise HostError(host, f"the private key of {host.user} is none of OpenSSH without a passphrase") from None


async def _output(connection: asyncssh.SSHClientConnection, host: Host, command: Command) -> str:
    process = await connection.create_process(command.line, encoding="utf-8", errors="replace")
    try:
        with contextlib.suppress(OSError):  # of a command that has ended already
            process.stdin.write(command.stdin)
            process.stdin.write_eof()
        out, err = await asyncio.gather(*(_read(stream, host, command) for stream in (process.stdout, process.stderr)))
        await process.wait_closed()
        status, signal = process.exit_status, process.exit_signal
    finally:
        process.close()  # without waiting: OpenSSH's server closes its side when the command ends, which it may never do
    if status is None and signal is None:
        raise ConnectionResetError("no status came")
    if status != 0:
        said = without(f"{out}\n{err}", (*command.secrets, host.password))
        raise CommandFailed(host, command.what, -1 if status is None else status, said)
    return out


async def _read(stream: asyncssh.SSHReader[str], host: Host, command: Command) -> str:
    parts, size = list[str](), 0
    while part := await stream.read(65536):
        parts.append(part)
        size += len(part)
        if size > OUTPUT_LIMIT:
            raise HostError(host, f"{command.what} printed more than {OUTPUT_LIMIT >> 20} MiB and was ended")
    return "".join(parts)


def _words(error: BaseException) -> str:
    return words(error) if str(error) else type(error).__name__
