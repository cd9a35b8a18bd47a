# SPDX-License-Identifier: Apache-2.0
"""A Keystone of the bed's own, in a virtual environment of its own that is kept in the cache.

Set up as an operator does: `keystone-manage` makes the data base, the administrator and the region; the
services and their users are added through Keystone's own API.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import requests
from cryptography.fernet import Fernet
from keystoneauth1 import session
from keystoneauth1.identity import v3
from keystoneclient.v3 import client

from builds.commands import run

from . import config, mariadb, network, virtualenv
from .ledger import Ledger

REGION = "RegionOne"
INTERFACES = ("public", "internal", "admin")
SERVICES = "service"
"""The project of the services' own users."""


@dataclass(frozen=True)
class Credentials:
    """A user of the domain Default, with the role admin in a project of it."""

    username: str
    password: str
    project: str


@dataclass(frozen=True)
class Identity:
    """A running Keystone and its administrator."""

    url: str
    admin: Credentials

    def add_service(self, user: str, endpoint: str, *types: str) -> Credentials:
        """Put a service into the catalog, as each of `types`; the user that it checks tokens with, and acts as."""
        keystone = self._client()
        [project] = keystone.projects.list(name=SERVICES)
        made = Credentials(user, secrets.token_urlsafe(16), project.name)
        member = keystone.users.create(made.username, project.domain_id, password=made.password)
        for role in keystone.roles.list():
            if role.name in ("admin", "service"):
                keystone.roles.grant(role, user=member, project=project)
        for service_type in types:
            service = keystone.services.create(user, service_type)
            for interface in INTERFACES:
                keystone.endpoints.create(service, endpoint, interface, REGION)
        return made

    def add_project_of_services(self) -> None:
        self._client().projects.create(SERVICES, "default")

    def environment(self) -> dict[str, str]:
        """What the administrator's shell has, for `openstack` and every other client."""
        return {
            "OS_AUTH_URL": self.url,
            "OS_IDENTITY_API_VERSION": "3",
            "OS_REGION_NAME": REGION,
            "OS_USERNAME": self.admin.username,
            "OS_PASSWORD": self.admin.password,
            "OS_PROJECT_NAME": self.admin.project,
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
        }

    def answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=5).ok
        except requests.RequestException:
            return False

    def session(self) -> session.Session:
        """The administrator's, for a client of any service."""
        return session.Session(
            v3.Password(
                self.url, username=self.admin.username, password=self.admin.password, project_name=self.admin.project,
                user_domain_id="default", project_domain_id="default",
            )
        )  # fmt: skip

    def _client(self) -> client.Client:
        return client.Client(session=self.session(), interface="public")


def start(ledger: Ledger, database: mariadb.Server) -> Identity:
    programs = virtualenv.synced("keystone") / "bin"
    folder = ledger.folder(ledger.home / "keystone", 0o700)
    [port] = config.free_ports(1)
    text = config.render("keystone.conf", folder=folder, database=database.create("keystone"))
    config_file = ledger.file(folder / "keystone.conf", text)
    ledger.file(folder / "gunicorn.conf.py", config.render("gunicorn.conf.py", address=network.HOST, port=port))
    identity = Identity(
        f"http://{network.HOST}:{port}/v3", Credentials("admin", password=secrets.token_urlsafe(16), project="admin")
    )
    for keys in ("fernet-keys", "credential-keys"):
        _make_keys(ledger.folder(folder / keys, 0o700))
    _set_up(programs / "keystone-manage", config_file, identity)
    process = ledger.spawn(
        "keystone",
        [programs / "gunicorn"],
        env=os.environ | {"OS_KEYSTONE_CONFIG_FILES": str(config_file)},
        cwd=folder,
    )
    process.wait_until(identity.answers, 60, "Keystone to answer")
    identity.add_project_of_services()
    return identity


def _make_keys(folder: Path) -> None:
    """The primary key and the next one. `keystone-manage` would make the same, two seconds slower a folder."""
    for name in ("0", "1"):
        (folder / name).write_bytes(Fernet.generate_key())


def _set_up(manage: Path, config_file: Path, identity: Identity) -> None:
    run([manage, "--config-file", config_file, "db_sync"])
    # The password goes by the environment, for everybody can read arguments.
    endpoints = [f"--bootstrap-{interface}-url={identity.url}" for interface in INTERFACES]
    run(
        [manage, "--config-file", config_file, "bootstrap", "--bootstrap-region-id", REGION, *endpoints],
        env=os.environ | {"OS_BOOTSTRAP_PASSWORD": identity.admin.password},
    )
