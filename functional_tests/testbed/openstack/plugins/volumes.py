# SPDX-License-Identifier: Apache-2.0
"""Cinder driver: a volume is a sparse file, which Nova's driver of the bed gives to a machine as a disk."""

import shutil
from pathlib import Path
from typing import Any

from cinder.volume import driver
from oslo_config import cfg


class Files(driver.VolumeDriver):  # type: ignore[misc]
    """Files in the folder `volumes` of Cinder's state."""

    VERSION = "1.0"

    def do_setup(self, context: Any) -> None:
        pass

    def check_for_setup_error(self) -> None:
        pass

    def create_volume(self, volume: Any) -> None:
        self._resize(volume, volume.size)

    def delete_volume(self, volume: Any) -> None:
        _file(volume).unlink(missing_ok=True)

    def extend_volume(self, volume: Any, new_size: int) -> None:
        self._resize(volume, new_size)

    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        shutil.copyfile(_file(src_vref), _file(volume))
        self._resize(volume, volume.size)

    def create_snapshot(self, snapshot: Any) -> None:
        shutil.copyfile(_file(snapshot.volume), _file(snapshot))

    def delete_snapshot(self, snapshot: Any) -> None:
        _file(snapshot).unlink(missing_ok=True)

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        shutil.copyfile(_file(snapshot), _file(volume))
        self._resize(volume, volume.size)

    def clone_image(self, context: Any, volume: Any, location: Any, meta: Any, service: Any) -> tuple[dict[str, str], bool]:
        """A volume that a server boots from is empty: its machine's root folder is that of the image."""
        self._resize(volume, volume.size)
        return {}, True

    def initialize_connection(self, volume: Any, connector: Any) -> dict[str, Any]:
        return {"driver_volume_type": "local", "data": {"device_path": str(_file(volume)), "volume_id": volume.id}}

    def terminate_connection(self, *args: Any, **kwargs: Any) -> None:
        pass

    create_export = ensure_export = remove_export = terminate_connection

    def _resize(self, volume: Any, gigabytes: int) -> None:
        with _file(volume).open("ab") as file:
            file.truncate(gigabytes << 30)

    def _update_volume_stats(self) -> None:
        self._stats = {
            "volume_backend_name": "files", "vendor_name": "bed", "driver_version": self.VERSION,
            "storage_protocol": "file", "total_capacity_gb": 1000, "free_capacity_gb": 1000, "reserved_percentage": 0,
            "QoS_support": False, "multiattach": True, "thin_provisioning_support": True,
            "max_over_subscription_ratio": "20.0", "provisioned_capacity_gb": 0,
        }  # fmt: skip


def _file(volume: Any) -> Path:
    return Path(cfg.CONF.state_path, "volumes", volume.id)
