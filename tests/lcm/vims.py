# SPDX-License-Identifier: Apache-2.0
"""VIMs in Tacker's own database, with encrypted credentials, read by Tacker's own client of the NFVO's database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import fernet
from oslo_config import cfg
from oslo_context import context as oslo_context
from tacker import context, manager
from tacker.db.db_sqlalchemy.models import VnfPackage, VnfPackageVnfd
from tacker.db.nfvo.nfvo_db_plugin import NfvoPluginDb
from tacker.nfvo.drivers.vim import openstack_driver  # noqa: F401 - registers [vim_keys]

from tests.instance import BLUE

PROJECT, OTHER_PROJECT = (f"8f0e2ef0-5d8a-4a43-a1f0-00000000000{digit}" for digit in "bd")
PACKAGE = "8f0e2ef0-5d8a-4a43-a1f0-0000000000e1"


@contextlib.contextmanager
def request_of(project: str, *, is_admin: bool = False) -> Iterator[None]:
    """Within it the thread serves a request of a user of that project."""
    before = oslo_context.get_current()
    context.Context(user_id="user", tenant_id=project, is_admin=is_admin).update_store()
    yield
    (before or oslo_context.RequestContext(overwrite=False)).update_store()


@contextlib.contextmanager
def _admin() -> Iterator[Any]:
    """A context whose session does not keep the database locked."""
    admin = context.get_admin_context()
    with admin.session:
        yield admin


@contextlib.contextmanager
def package_of(project: str, vnfd_id: str) -> Iterator[None]:
    """Within it Tacker has a VNF package of that project with the VNFD."""
    rows: list[Any] = [
        VnfPackage(id=PACKAGE, tenant_id=project, onboarding_state="ONBOARDED", operational_state="ENABLED",
                   usage_state="IN_USE", size=0),
        VnfPackageVnfd(id=PACKAGE, package_uuid=PACKAGE, vnfd_id=vnfd_id, vnf_provider="a", vnf_product_name="a",
                       vnf_software_version="1", vnfd_version="1"),
    ]  # fmt: skip
    for row in rows:
        with _admin() as admin, admin.session.begin():
            admin.session.add(row)
    yield
    for kind in (VnfPackageVnfd, VnfPackage):
        with _admin() as admin, admin.session.begin():
            admin.session.query(kind).delete()


class Database(NfvoPluginDb):  # type: ignore[misc]
    def __init__(self) -> None:
        """Without the tables of all of Tacker."""


class Vim:
    """The registered VIM of one project, whose token an operator updates."""

    def __init__(self, url: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        key = fernet.Fernet.generate_key()
        (folder / BLUE).write_bytes(key)
        self._fernet, self._plugin = fernet.Fernet(key), Database()
        cfg.CONF.set_override("openstack", str(folder), "vim_keys")
        patch.setattr(manager.TackerManager, "get_service_plugins", lambda: {"NFVO": self._plugin})
        vim = {
            "id": BLUE, "type": "kubernetes", "tenant_id": PROJECT, "name": "edge", "is_default": False, "extra": {},
            "placement_attr": {"regions": ["default"]},
            "vim_project": {"name": "default"}, "auth_url": url, "auth_cred": self._credentials("token"),
        }  # fmt: skip
        with _admin() as admin:
            self._plugin.create_vim(admin, vim)

    def update(self, token: str) -> None:
        vim = {"auth_cred": self._credentials(token), "vim_project": {"name": "default"}}
        with _admin() as admin:
            self._plugin.update_vim(admin, BLUE, vim)

    def delete(self) -> None:
        with _admin() as admin:
            self._plugin.delete_vim(admin, BLUE, soft_delete=False)
        cfg.CONF.clear_override("openstack", "vim_keys")

    def _credentials(self, token: str) -> dict[str, Any]:
        return {"bearer_token": self._fernet.encrypt(token.encode()).decode(), "ssl_ca_cert": "None"}
