# SPDX-License-Identifier: Apache-2.0
"""Where the bed's Tacker keeps the keys of registered VIMs: files, in place of the Barbican that operators have.

Tacker 16 registers a Kubernetes VIM only with a key manager; `[key_manager] api_class` names this one, so that it is
loaded into Tacker's own processes. The API server stores a key, the conductors read it.
"""

import os
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from oslo_config import cfg
from tacker.keymgr.key_manager import KeyManager


class FileKeyManager(KeyManager):  # type: ignore[misc]
    """One file a key, in the folder of `[vim_keys] openstack`."""

    def __init__(self, auth_url: str) -> None:
        pass

    def store(self, context: Any, managed_object: bytes, expiration: str | None = None) -> str:
        identifier = str(uuid.uuid4())
        with os.fdopen(os.open(_file(identifier), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(managed_object)
        return identifier

    def get(self, context: Any, managed_object_id: str, metadata_only: bool = False) -> SimpleNamespace:
        return SimpleNamespace(payload=_file(managed_object_id).read_bytes())

    def delete(self, context: Any, managed_object_id: str) -> None:
        _file(managed_object_id).unlink()


def _file(identifier: str) -> Path:
    return Path(cfg.CONF.vim_keys.openstack, identifier)
