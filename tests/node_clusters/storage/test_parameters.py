# SPDX-License-Identifier: Apache-2.0
"""The sections of persistent volumes: the body of the specification, and every mistake with its place."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import parameters
from k8s_cr_driver.node_clusters.storage.parameters import KERNEL, Export, Registration, Server, Storage, Volume

from . import specification
from .specification import parameter, storage_server

VOLUMES, EXPORTS = "cinder_volume_setup_params", "nfs_server_setup_params"
NETWORK = ("10.10.0.0/24",)


def read(given: dict[str, Any], kept: dict[str, Any] | None = None) -> Storage:
    return parameters.read(given, kept or {}, "4a1f").storage


def test_the_request_of_the_specification_is_taken_as_it_is() -> None:
    """Its storage server has no nic_cp_name: without it upstream takes the server for a node, and never removes its volumes."""
    assert read(specification.parameter()) == Storage(
        Server(
            "storage_server_CP",
            "ubuntu",
            "ubuntu",
            KERNEL,
            (Volume("storage_server_volume", "/volume"),),
            tuple(Export(f"/volume/nfs/pv{number}", NETWORK) for number in (1, 2, 3)),
        ),
        tuple(Registration(f"Files/kubernetes/nfs-pv{number}.yaml", "storage_server_CP") for number in (1, 2, 3)),
    )


def test_each_section_may_be_without_the_other() -> None:
    """Upstream fails without pv_registration_params, and ignores those that are without a storage server."""
    assert read(parameter(pv_registration_params=None)).registrations == ()
    alone = read(parameter(storage_server=None))
    assert alone.server is None and len(alone.registrations) == 3 and alone
    assert not read(parameter(storage_server=None, pv_registration_params=None))


def test_a_directory_may_be_exported_to_several_networks() -> None:
    networks = ("10.10.0.0/24", "10.20.0.7/32", "10.10.0.5/24")
    rows = [{"export_dir": "/volume/a", "export_to": network} for network in networks]
    server = read(parameter(storage_server=storage_server(**{EXPORTS: rows}))).server
    assert server is not None
    assert server.exports == (Export("/volume/a", ("10.10.0.0/24", "10.20.0.7/32")),)
    assert server.exports[0].is_for("10.20.0.7") and not server.exports[0].is_for("10.30.0.1")


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("ssh_cp_name", "", ".ssh_cp_name: is missing"),
        ("username", "root; reboot", ".username: must be the name of a user"),
        ("user_name", "x", ".user_name: is not a parameter; is it username?"),
        ("nfs_server", "samba", ".nfs_server: must be kernel or ganesha"),
        ("force", "yes", ".force: must be true or false, not text"),
        (VOLUMES, [], f".{VOLUMES}: must be a list of 1 to 100 mappings"),
        (VOLUMES, None, f".{VOLUMES}: must be a list of 1 to 100 mappings"),
        (VOLUMES, ["v"], f".{VOLUMES}[0]: must be a mapping, not text"),
        (VOLUMES, [{"volume_resource_id": "v"}], f".{VOLUMES}[0].mount_to: is missing"),
        (VOLUMES, [{"volume_resource_id": "v", "mount_to": "/"}], f".{VOLUMES}[0].mount_to: must be an absolute path"),
        (VOLUMES, [{"volume_resource_id": "v", "mount_to": "/a/../etc"}], f".{VOLUMES}[0].mount_to: must be an absolute path"),
        (
            VOLUMES,
            [{"volume_resource_id": "v", "mount_to": "/volume"}, {"volume_resource_id": "v", "mount_to": "/other"}],
            f".{VOLUMES}: several have the volume_resource_id v",
        ),
        (
            VOLUMES,
            [{"volume_resource_id": "v", "mount_to": "/volume"}, {"volume_resource_id": "w", "mount_to": "/volume"}],
            f".{VOLUMES}: several have the mount_to /volume",
        ),
        (EXPORTS, [{"export_dir": "/volume/a b", "export_to": "10.0.0.0/8"}], f".{EXPORTS}[0].export_dir: must be an absolute"),
        (EXPORTS, [{"export_dir": "/volume/a", "export_to": "*"}], f".{EXPORTS}[0].export_to: must be a network"),
        (EXPORTS, [{"export_dir": "/volume/a", "export_to": "10.0.0.0/8", "x": 1}], f".{EXPORTS}[0].x: is not a parameter"),
        (
            EXPORTS,
            [{"export_dir": "/volumes/a", "export_to": "10.0.0.0/8"}],
            f".{EXPORTS}[0].export_dir: /volumes/a is on none of the volumes, which are mounted to /volume",
        ),
    ],
)
def test_a_mistake_of_the_storage_server(field: str, value: Any, problem: str) -> None:
    with pytest.raises(InvalidRequest) as failure:
        read(parameter(storage_server=storage_server(**{field: value})))
    assert str(failure.value).startswith(f"additionalParams.k8s_cluster_installation_param.storage_server{problem}")


@pytest.mark.parametrize(
    ("section", "value", "problem"),
    [
        ("storage_server", "all", "storage_server: must be a mapping, not text"),
        ("storage_servers", {}, "storage_servers: is not a parameter; is it storage_server?"),
        ("pv_registration_params", {}, "pv_registration_params: must be a list of 0 to 100 mappings"),
        ("pv_registration_params", [{}], "pv_registration_params[0].pv_manifest_file_path: is missing"),
        (
            "pv_registration_params",
            [{"pv_manifest_file_path": "../pv.yaml", "nfs_server_cp": "x"}],
            "pv_registration_params[0].pv_manifest_file_path: must be a path in the package",
        ),
    ],
)
def test_a_mistake_of_a_section(section: str, value: Any, problem: str) -> None:
    with pytest.raises(InvalidRequest) as failure:
        read(parameter(**{section: value}))
    assert f"additionalParams.k8s_cluster_installation_param.{problem}" in str(failure.value)


def test_all_mistakes_are_reported_at_once_with_those_of_the_cluster() -> None:
    wrong = storage_server(username="", **{VOLUMES: [{}], EXPORTS: []})
    with pytest.raises(InvalidRequest) as failure:
        read(parameter(master_node={}, storage_server=wrong, pv_registration_params=[{}]))
    assert len(str(failure.value).splitlines()) == 4 + 1 + 2 + 1 + 2


def test_neither_the_password_nor_force_is_kept_for_later_requests() -> None:
    kept = parameters.merged(parameter(storage_server=storage_server(password="secret-word", force=True)), {})
    assert "secret-word" not in str(kept) and "force" not in str(kept)
    later = read({"storage_server": {"password": "another"}}, kept)
    assert later.server is not None
    assert (later.server.password, later.server.volumes[0].mount_to, later.force) == ("another", "/volume", False)
