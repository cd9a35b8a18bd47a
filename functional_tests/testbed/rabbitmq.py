# SPDX-License-Identifier: Apache-2.0
"""A RabbitMQ of the bed's own: Debian's program on data, config, cookie and ports of the state folder and its bed.

Debian's script in the PATH would change to the user rabbitmq and to the host's folders, so the one below it is called.
The Erlang port mapper is started here too: RabbitMQ would start one that outlives it.
"""

import os
import secrets
import socket
from dataclasses import dataclass

import kombu
from amqp.exceptions import NotFound

from . import config
from .ledger import Ledger

PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
LOOPBACK_ONLY = "-kernel inet_dist_use_interface {127,0,0,1}"


@dataclass(frozen=True)
class Broker:
    """A running RabbitMQ. `url` is as oslo.messaging takes it."""

    url: str

    def consumers(self, queue: str) -> int:
        """How many consumers listen on the queue; 0 if there is no such queue."""
        with kombu.Connection(self.url.replace("rabbit://", "amqp://", 1)) as connection:
            try:
                declared = connection.default_channel.queue_declare(queue, passive=True)
            except NotFound:
                return 0
            return int(declared.consumer_count)


def start(ledger: Ledger) -> Broker:
    folder = ledger.folder(ledger.home / "rabbitmq", 0o700)
    port, distribution_port, mapper_port = config.free_ports(3)
    password = secrets.token_urlsafe(16)
    config_file = ledger.file(folder / "rabbitmq.conf", config.render("rabbitmq.conf", port=port, password=password))
    environment = os.environ | {
        "HOME": str(folder),  # where the cookie is made
        "ERL_EPMD_PORT": str(mapper_port),
        "RABBITMQ_NODENAME": "bed@localhost",
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_CONFIG_FILE": str(config_file),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",  # not the host's
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{LOOPBACK_ONLY} -start_epmd false",
        "RUNNING_UNDER_SYSTEMD": "1",  # the script becomes the Erlang machine, instead of waiting for it
    }
    mapper = ledger.spawn("epmd", ["epmd", "-port", str(mapper_port), "-address", "127.0.0.1"])
    mapper.wait_until(lambda: _listens(mapper_port), 10, "the Erlang port mapper to listen")
    process = ledger.spawn("rabbitmq", [PROGRAM], env=environment, cwd=folder)
    process.wait_until(lambda: _listens(port), 90, "RabbitMQ to listen")
    return Broker(f"rabbit://tacker:{password}@127.0.0.1:{port}//")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
