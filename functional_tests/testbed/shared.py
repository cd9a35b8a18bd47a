# SPDX-License-Identifier: Apache-2.0
"""MariaDB, RabbitMQ and Keystone, which Tacker and the cloud share: the first part that asks for one starts it.

Parts start side by side, and one can be started while another is up already: so what is known about a service that runs
lies in the state folder.
"""

import pickle
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from builds.progress import step

from . import keystone, mariadb, rabbitmq
from .ledger import Ledger

T = TypeVar("T")


def database(ledger: Ledger) -> mariadb.Server:
    return _once(ledger, "MariaDB", mariadb.start)


def broker(ledger: Ledger) -> rabbitmq.Broker:
    return _once(ledger, "RabbitMQ", rabbitmq.start)


def identity(ledger: Ledger) -> keystone.Identity:
    server = database(ledger)
    return _once(ledger, "Keystone", lambda ledger: keystone.start(ledger, server))


_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)


def _once(ledger: Ledger, name: str, start: Callable[[Ledger], T]) -> T:
    file = ledger.home / f"{name.lower()}.pickle"
    with _locks[name]:
        if not file.exists():
            with step(f"Starting {name}"):
                service = start(ledger)
            file.touch(0o600)  # an administrator's password is in one
            file.write_bytes(pickle.dumps(service))
        found: T = pickle.loads(file.read_bytes())
    return found
