# SPDX-License-Identifier: Apache-2.0
"""What is wrong between a request for a cluster on servers, the files of its package, and its other sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.node_clusters import balancers
from k8s_cr_driver.node_clusters.kubespray import parameters as kubespray
from k8s_cr_driver.node_clusters.kubespray.parameters import Balancer
from k8s_cr_driver.node_clusters.parameters import PARAMETER, Parameters, vim_name_problem
from k8s_cr_driver.node_clusters.storage import parameters as storage
from k8s_cr_driver.node_clusters.storage import persistent_volumes
from k8s_cr_driver.objects.fields import mapping

USER_DATA, USER_DATA_CLASS = "lcm-operation-user-data", "lcm-operation-user-data-class"
_WHERE = f"additionalParams.{PARAMETER}"


def problems(folder: Path, body: Mapping[str, Any], asked: Parameters, balancer: Balancer | None) -> Iterator[str]:
    """A sentence for each mistake of the body of an instantiate, which has these parameters."""
    yield from _user_data(folder, mapping(body, "additionalParams"))
    if problem := vim_name_problem(asked.vim_name, body):
        yield f"{_WHERE}.{problem}"
    if not asked.ssh_key:
        for where, password in _passwords(asked, balancer):
            if not password:
                yield f"{_WHERE}.{where}: is missing, and ssh_key, too; give one of them, by which SSH logs in"
    missing = [path for path in _files(asked, balancer) if not (folder / path).is_file()]
    yield from (f"{_WHERE}: {path} is not in the package" for path in missing)
    if not missing:
        yield from _volumes(folder, asked.storage)


def _files(asked: Parameters, balancer: Balancer | None) -> Iterator[str]:
    volumes = (one.path for one in asked.storage.registrations)
    others = (one.script_path for one in (balancer, asked.balancers) if one is not None)
    yield from filter(None, (asked.script_path, *asked.manifests, *volumes, *others))


def _passwords(asked: Parameters, balancer: Balancer | None) -> Iterator[tuple[str, str]]:
    yield "master_node.password", asked.masters.password
    yield "worker_node.password", asked.workers.password
    if asked.balancers:
        yield f"{balancers.SECTION}.ssh_password", asked.balancers.group.password
    if balancer:
        yield f"{kubespray.BALANCER}.ssh_password", balancer.password
    if asked.storage.server:
        yield f"{storage.SERVER}.password", asked.storage.server.password


def _volumes(folder: Path, asked: storage.Storage) -> Iterator[str]:
    """Files that have no PersistentVolumes, and directories that the storage server does not export."""
    try:
        texts = {one.path: (folder / one.path).read_text(encoding="utf-8") for one in asked.registrations}
        persistent_volumes.read(asked, texts, {one.server_cp: "" for one in asked.registrations})
    except UnicodeDecodeError:
        yield f"{_WHERE}.{storage.REGISTRATIONS}: a file is no text in UTF-8"
    except InvalidPackage as error:
        yield f"{_WHERE}.{storage.REGISTRATIONS}: {error}"


def _user_data(folder: Path, params: Mapping[str, Any]) -> Iterator[str]:
    """Tacker wants both or none, and imports the file when the servers are granted."""
    given = {key: str(params[key]) for key in (USER_DATA, USER_DATA_CLASS) if key in params}
    if len(given) == 1:
        [other] = {USER_DATA, USER_DATA_CLASS} - given.keys()
        yield f"additionalParams.{other}: is missing; Tacker takes both or none"
        return
    if not given:
        return
    path = folder / given[USER_DATA]
    if not path.is_file():
        yield f"additionalParams.{USER_DATA}: {given[USER_DATA]} is not in the package"
    elif not re.search(rf"\b{re.escape(given[USER_DATA_CLASS])}\b".encode(), path.read_bytes()):
        yield f"additionalParams.{USER_DATA_CLASS}: {given[USER_DATA]} has no class {given[USER_DATA_CLASS]}"
