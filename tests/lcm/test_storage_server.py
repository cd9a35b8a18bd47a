# SPDX-License-Identifier: Apache-2.0
"""The heal of a storage server, as Tacker starts it: a fake cloud, and machines behind real SSH servers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.lcm import hook
from k8s_cr_driver.lcm.kubespray import kubespray
from k8s_cr_driver.lcm.node_clusters import persistent_volumes
from k8s_cr_driver.ssh.host import Host
from tests.cloud import openstack
from tests.cloud.openstack import OpenStack
from tests.cloud.stacks import Deployed, Server, Volume
from tests.node_clusters.storage import machines
from tests.node_clusters.storage.machines import Machine

ID = "1f0c2a55-8b3e-4c1d-9f00-00000000000a"
ADDRESSES = {"masterNode": "127.0.0.2", "workerNode": "127.0.0.3", "storageServer": "127.0.0.4"}
GROUP = {"username": "admin", "password": "right"}
PV = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: one}\nspec: {nfs: {server: x, path: /volume/one}}\n"
FREE = "one\tAvailable\t\t\t\t127.0.0.4\tdigest\t/volume/one\n"
BOUND = "one\tBound\t\tns\tdata\t127.0.0.4\tdigest\t/volume/one\n"


class Tacker:
    """Runs heal_start of the storage server."""

    def __init__(self, cloud: OpenStack, found: dict[str, Machine], package: Path) -> None:
        self.cloud, self.machines, self.package = cloud, found, package
        self.deployed = Deployed([Server(vdu, 0, f"{vdu}-server", address) for vdu, address in ADDRESSES.items()])
        self.deployed.volumes = [Volume(ID, "volume", "storageServer-0-id", ("storageServer-server",))]
        self.deployed.fill(cloud)

    def heal(
        self, driver: Callable[[hook.Call], None] = persistent_volumes, *, force: bool = False, with_volume: bool = False
    ) -> tuple[dict[str, Any], str]:
        """What is kept in the instance, and the error."""
        master, worker = ({**GROUP, "vdu_id": f"{role}Node", "ssh_cp_name": f"{role}Node_CP1"} for role in ("master", "worker"))
        storage_server = {
            **GROUP,
            "ssh_cp_name": "storageServer_CP1",
            "cinder_volume_setup_params": [{"volume_resource_id": "volume", "mount_to": "/volume"}],
            "nfs_server_setup_params": [{"export_dir": "/volume/one", "export_to": "127.0.0.0/8"}],
            "force": force,
        }
        parameter = {
            "master_node": {**master, "cluster_cp_name": "masterNode_CP1"},
            "worker_node": worker,
            "ssh_host_keys": [one.server.public_key for one in self.machines.values()],
            "storage_server": storage_server,
            "pv_registration_params": [{"pv_manifest_file_path": "pv.yaml", "nfs_server_cp": "storageServer_CP1"}],
            **({"ansible": self._ansible} if driver is kubespray else {}),
        }
        removed = [{"type": "COMPUTE", "resource": {"resourceId": "storageServer-server"}}]
        removed += [{"type": "STORAGE", "resource": {"resourceId": ID}}] if with_volume else []
        vim = {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", **self.cloud.vim()}
        call = hook.Call(
            "heal_start",
            self.package / "Scripts" / "x.py",
            {"vnfcInstanceId": ["v"], "additionalParams": {"k8s_cluster_installation_param": parameter}},
            {**self.deployed.record(), "vimConnectionInfo": {"vim1": vim}},
            {},
            {"removeResources": removed},
            self.package,
        )
        try:
            driver(call)
        except DriverError as error:
            return {}, hook.line(error)
        return call.instance["metadata"]["node_cluster"]["storage"], ""

    @property
    def _ansible(self) -> dict[str, Any]:
        paths = {"kubespray_root_path": "/opt/kubespray", "transferring_inventory_path": "/opt/inventories"}
        keys = [one.server.public_key for one in self.machines.values()]
        return {**GROUP, **paths, "ip_address": "127.0.0.9", "host_keys": keys}


@pytest.fixture
def tacker(tmp_path: Path, options_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tacker]:
    with options_file.open("a") as file:
        file.write("allow_http_endpoints = true\nallowed_ssh_hosts = 127.0.0.0/8\n")
    with contextlib.ExitStack() as stack:
        found: dict[str, Machine] = {}
        port = 0
        for vdu, address in ADDRESSES.items():
            found[vdu] = stack.enter_context(machines.serving(tmp_path / vdu, address, address, port))
            port = found[vdu].server.port
        *defaults, _ = Host.__init__.__defaults__  # type: ignore[misc]
        monkeypatch.setattr(Host.__init__, "__defaults__", (*defaults, port))
        (tmp_path / "pv.yaml").write_text(PV)
        yield Tacker(stack.enter_context(openstack.serving()), found, tmp_path)


@pytest.mark.parametrize("driver", [persistent_volumes, kubespray])
def test_a_storage_server_whose_volumes_nobody_uses_is_replaced(tacker: Tacker, driver: Callable[[hook.Call], None]) -> None:
    """Whoever has made the cluster."""
    master = tacker.machines["masterNode"]
    master.become_master(FREE)
    kept, failure = tacker.heal(driver)
    assert failure == ""
    assert master.log == ["kubectl delete persistentvolume one --ignore-not-found --timeout=60s"]
    assert kept == {"vdu": "storageServer", "report": [f"volume: the Cinder volume {ID} is kept with its data"]}
    assert [name for name, one in tacker.machines.items() if one.server.logins] == ["masterNode"], "the server may be dead"
    assert len(tacker.cloud.seen) == 4


@pytest.mark.parametrize(
    ("volumes", "pods", "reason"),
    [
        (
            BOUND,
            "ns/web\tRunning\tns\t\tdata\n",
            "PersistentVolume one is Bound and has the claim ns/data; Pod ns/web mounts it",
        ),
        (FREE, "ns/web\tRunning\tns\t127.0.0.4\t\n", "Pod ns/web mounts it"),
    ],
    ids=["bound", "mounted without a claim"],
)
def test_a_storage_server_whose_volumes_are_in_use_stays_unless_forced(
    tacker: Tacker, volumes: str, pods: str, reason: str
) -> None:
    master = tacker.machines["masterNode"]
    master.become_master(volumes, pods)
    _, failure = tacker.heal(with_volume=True)
    lost = f"volume: the Cinder volume {ID} is replaced by a new one, and its data are lost"
    refused = "the storage server cannot be replaced while its volumes are in use"
    assert failure.startswith(f"{refused}; {reason}; {lost}; Delete the Pods and claims")
    assert master.log == []
    kept, failure = tacker.heal(with_volume=True, force=True)
    assert failure == ""
    assert kept["report"][0] == lost
    assert kept["report"][-1] == "Pod ns/web mounts it: it is forced, and waits for the new server"
