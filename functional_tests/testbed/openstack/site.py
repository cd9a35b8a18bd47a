# SPDX-License-Identifier: Apache-2.0
"""What the cloud's services have in common: folders, virtual environment, data base, broker, catalog and processes."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from builds.commands import run

from .. import config, machine, mariadb, network, paths, rabbitmq, shared, virtualenv
from ..keystone import SERVICES, Credentials, Identity
from ..ledger import Ledger, Process

NAMES = ("glance", "placement", "nova", "neutron", "cinder", "octavia", "heat")


class Site:
    """The place where the cloud's services are set up. `folder` is theirs in the state folder."""

    def __init__(
        self, ledger: Ledger, environment: Path, database: mariadb.Server, broker: rabbitmq.Broker, identity: Identity
    ) -> None:
        self.ledger, self.environment, self.database, self.broker, self.identity = (
            ledger, environment, database, broker, identity,
        )  # fmt: skip
        machine.foresee(ledger)
        self.folder = ledger.folder(ledger.home / "openstack", 0o700)
        ledger.others(self.folder)  # of the servers, and of the network's agent
        plugins = ledger.folder(self.folder / "bed_plugins-1.0.dist-info")
        ledger.file(plugins / "METADATA", "Metadata-Version: 2.1\nName: bed-plugins\nVersion: 1.0\n")
        ledger.file(plugins / "entry_points.txt", config.render("openstack/entry_points.txt"))
        self.urls = {
            name: f"http://{network.HOST}:{port}" for name, port in zip(NAMES, config.free_ports(len(NAMES)), strict=True)
        }

    @classmethod
    def prepare(cls, ledger: Ledger) -> "Site":
        """The services that the cloud shares with Tacker are started meanwhile, if they are not up."""
        with ThreadPoolExecutor() as pool:
            environment = pool.submit(virtualenv.synced, "openstack")
            broker = pool.submit(shared.broker, ledger)
            identity = pool.submit(shared.identity, ledger)
            return cls(ledger, environment.result(), shared.database(ledger), broker.result(), identity.result())

    def home(self, service: str) -> Path:
        """The folder of a service's configuration and data."""
        folder = self.folder / service
        folder.mkdir(exist_ok=True)
        return folder

    def configure(self, service: str, file: str, user: Credentials, template: str = "", **values: object) -> Path:
        """Write a service's configuration file; the template is named as the service if no other is."""
        credentials = config.render(
            "openstack/credentials.conf", keystone=self.identity.url, username=user.username, password=user.password,
            project=SERVICES,
        )  # fmt: skip
        text = config.render(
            f"openstack/{template or service}.conf", folder=self.home(service), broker=self.broker.url,
            data=self.environment / "etc", credentials=credentials, keystone=self.identity.url, **values,
        )  # fmt: skip
        return self.ledger.file(self.home(service) / file, text)

    def manage(self, program: str, *arguments: str | Path) -> None:
        """Run a service's command to its end."""
        run([self.environment / "bin" / program, *arguments], env=self._variables())

    def spawn(self, name: str, settings: Path, variables: Mapping[str, str] | None = None) -> Process:
        """Start the program of that name."""
        argv: list[str | Path] = [self.environment / "bin" / name, "--config-file", settings]
        return self.ledger.spawn(name, argv, env=self._variables() | (variables or {}))

    def run_module(self, name: str, module: str, settings: Path, variables: Mapping[str, str]) -> Process:
        """Start a module of this project in the services' virtual environment."""
        argv: list[str | Path] = [self.environment / "bin" / "python", "-m", module, "--config-file", settings]
        return self.ledger.spawn(name, argv, env=self._variables() | variables)

    def serve(self, service: str, application: str, settings: Path, variables: Mapping[str, str] | None = None) -> Process:
        """Start a service's API, in gunicorn; `wait` for it."""
        text = config.render(
            "openstack/gunicorn.conf.py", service=service, application=application, settings=settings,
            address=self.urls[service].removeprefix("http://"),
        )  # fmt: skip
        self.ledger.file(self.home(service) / "gunicorn.conf.py", text)
        program = self.environment / "bin" / "gunicorn"
        variables = self._variables() | (variables or {})
        return self.ledger.spawn(f"{service}-api", [program], env=variables, cwd=self.home(service))

    def wait(self, service: str) -> None:
        """Until the service's API responds."""

        def responds() -> bool:
            try:
                return requests.get(self.urls[service], timeout=5).status_code < 500
            except requests.RequestException:
                return False

        self.ledger.process(f"{service}-api").wait_until(responds, 120, f"the API of {service} to respond")

    def _variables(self) -> dict[str, str]:
        """Of every process: where the bed's plugins are found."""
        return os.environ | {"PYTHONPATH": f"{paths.PROJECT}:{self.folder}", "PYTHONWARNINGS": "ignore"}
