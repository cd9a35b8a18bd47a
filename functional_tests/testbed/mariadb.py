# SPDX-License-Identifier: Apache-2.0
"""A MariaDB of the bed's own: Debian's program on data, config and socket in the state folder.

It has no TCP port and no password: the socket lies in a folder that only root can enter.
"""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymysql

from builds.commands import run

from . import config
from .ledger import Ledger


@dataclass(frozen=True)
class Server:
    """A running MariaDB."""

    socket: Path

    def create(self, name: str) -> str:
        """Make an empty data base; its SQLAlchemy URL."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb3")
        return f"mysql+pymysql://root@localhost/{name}?charset=utf8&unix_socket={self.socket}"

    def values(self, name: str) -> Iterator[tuple[str, str]]:
        """(TABLE.COLUMN, value) of all that a data base holds."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SHOW TABLES IN `{name}`")
            for (table,) in cursor.fetchall():
                cursor.execute(f"SELECT * FROM `{name}`.`{table}`")
                columns = [f"{table}.{column[0]}" for column in cursor.description]
                for row in cursor.fetchall():
                    yield from zip(columns, map(str, row), strict=True)

    def answers(self) -> bool:
        """Whether it listens, which it does when it is ready. PyMySQL would leave its socket open where nobody listens."""
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def _connect(self) -> pymysql.Connection:
        return pymysql.connect(user="root", unix_socket=str(self.socket))


def start(ledger: Ledger) -> Server:
    folder = ledger.folder(ledger.home / "mariadb", 0o700)
    options = f"--defaults-file={ledger.file(folder / 'mariadb.cnf', config.render('mariadb.cnf', folder=folder))}"
    run(["mariadb-install-db", options, "--auth-root-authentication-method=normal", "--skip-test-db"])
    server = Server(folder / "mariadb.sock")
    process = ledger.spawn("mariadb", ["mariadbd", options])
    process.wait_until(server.answers, 60, "MariaDB to answer on its socket")
    return server
