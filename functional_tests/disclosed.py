# SPDX-License-Identifier: Apache-2.0
"""What Tacker shows, and what it and its processes keep, as (where, what): no secret belongs there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .client import Client
from .testbed import mariadb
from .testbed.ledger import Ledger
from .vnf import Vnf

# Where Tacker keeps requests as they came: operations, their grants, and modifications of an instance.
_REQUESTS = (
    *("VnfLcmOpOccV2.operationParams", "VnfLcmOpOccV2.changedInfo"),
    *("GrantRequestV1.additionalParams", "GrantV1.additionalParams"),
)
VIMS = "VnfInstanceV2.vimConnectionInfo"
"""Where Tacker keeps the credentials of an instance's VIMs, encrypted if use_credential_encryption is set."""


def by_api(tacker: Client, vnfs: Iterable[Vnf], *, requests: bool = True) -> Iterator[tuple[str, str]]:
    """All that Tacker's API shows. requests: with the parameters of operations, as users have given them."""
    for vnf in vnfs:
        yield f"VNF instance {vnf.id}", str(vnf.shown())
        for one in tacker.operations(vnf.id):
            shown = one if requests else {key: value for key, value in one.items() if key != "operationParams"}
            yield f"operation {one['id']}", str(shown)
    yield from ((f"package {one['id']}", str(one)) for one in tacker.packages())


def in_rows(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """The values of Tacker's tables, but for requests."""
    database = mariadb.Server(ledger.home / "mariadb" / "mariadb.sock")
    yield from ((column, value) for column, value in database.values("tacker") if column not in _REQUESTS)


def in_files(folder: Path, belongs: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """The files below a folder, but for folders of these names."""
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in belongs]
        for name in files:
            path = Path(root, name)
            if path.is_file():
                yield str(path), path.read_bytes().decode(errors="replace")


def found(places: Iterable[tuple[str, str]], secrets: dict[str, str]) -> list[str]:
    """Which of the secrets, by their names, are where."""
    return [f"{name} in {place}" for place, text in places for name, secret in secrets.items() if secret in text]
