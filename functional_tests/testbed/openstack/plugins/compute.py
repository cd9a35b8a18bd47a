# SPDX-License-Identifier: Apache-2.0
"""Nova's virtualization driver: a server whose image names one of the bed in `os_distro` boots as a machine of the bed.

Nova's own fake driver does the rest: what the host offers, migrations, and servers of other images, in which nothing runs.
"""

from pathlib import Path
from typing import Any

from nova import conf, exception
from nova.api.metadata import base as metadata
from nova.compute import power_state
from nova.virt import driver, fake, hardware
from nova.virt.configdrive import ConfigDriveBuilder

from functional_tests.testbed.openstack import network, notice
from functional_tests.testbed.openstack.server import Image, Server

CONF = conf.CONF


class Machines(fake.FakeDriverWithoutFakeNodes):  # type: ignore[misc]
    """Nova calls it in one process; the machines outlive that process."""

    def spawn(
        self, context: Any, instance: Any, image_meta: Any, injected_files: Any, admin_password: Any, allocations: Any,
        network_info: Any = None, block_device_info: Any = None, power_on: bool = True, accel_info: Any = None,
    ) -> None:  # fmt: skip
        super().spawn(
            context, instance, image_meta, injected_files, admin_password, allocations, network_info, block_device_info,
            power_on, accel_info,
        )  # fmt: skip
        name = _machine_image(image_meta)
        if not name:
            return
        image = Image.read(_images() / f"{name}.json")
        _server(instance).create(image, _drive(instance, injected_files, network_info))
        if power_on:
            _turn_on(instance, network_info, block_device_info)

    def destroy(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        super().destroy(context, instance, *args, **kwargs)
        _server(instance).remove()

    def power_off(self, instance: Any, timeout: int = 0, retry_interval: int = 0) -> None:
        if _server(instance).exists():
            _server(instance).turn_off(timeout)
        else:
            super().power_off(instance, timeout, retry_interval)

    def power_on(
        self, context: Any, instance: Any, network_info: Any, block_device_info: Any = None, accel_info: Any = None,
        share_info: Any = None,
    ) -> None:  # fmt: skip
        if not _server(instance).exists():
            super().power_on(context, instance, network_info, block_device_info, accel_info, share_info)
        elif not _server(instance).is_on():
            _server(instance).turn_off()  # what a machine that has died left
            _turn_on(instance, network_info, block_device_info)

    def reboot(
        self, context: Any, instance: Any, network_info: Any, reboot_type: str, block_device_info: Any = None,
        bad_volumes_callback: Any = None, accel_info: Any = None, share_info: Any = None,
    ) -> None:  # fmt: skip
        if _server(instance).exists():
            _server(instance).turn_off(CONF.shutdown_timeout if reboot_type == "SOFT" else 0)
            _turn_on(instance, network_info, block_device_info)
        else:
            super().reboot(
                context, instance, network_info, reboot_type, block_device_info, bad_volumes_callback, accel_info, share_info
            )

    def resume_state_on_host_boot(
        self, context: Any, instance: Any, network_info: Any, share_info: Any, block_device_info: Any = None
    ) -> None:
        self.power_on(context, instance, network_info, block_device_info)

    def get_info(self, instance: Any, use_cache: bool = True) -> Any:
        server = _server(instance)
        if not server.exists():
            return super().get_info(instance, use_cache)
        return hardware.InstanceInfo(state=power_state.RUNNING if server.is_on() else power_state.SHUTDOWN)

    def get_console_output(self, context: Any, instance: Any) -> bytes:
        """Bytes: Nova encodes a text as Latin-1, which has no place for the ellipsis of systemd."""
        return _server(instance).console().encode()

    def detach_interface(self, context: Any, instance: Any, vif: Any) -> None:
        """Heat takes a port off the server that it replaces before it deletes that."""
        super().detach_interface(context, instance, vif)
        network.unplug(vif["id"], instance.uuid)

    def attach_volume(
        self, context: Any, connection_info: Any, instance: Any, mountpoint: str, *args: Any, **kwargs: Any
    ) -> None:
        super().attach_volume(context, connection_info, instance, mountpoint, *args, **kwargs)
        if _server(instance).is_on():
            _server(instance).plug_disk(mountpoint, connection_info["data"]["device_path"])

    def detach_volume(
        self, context: Any, connection_info: Any, instance: Any, mountpoint: str, *args: Any, **kwargs: Any
    ) -> None:
        super().detach_volume(context, connection_info, instance, mountpoint, *args, **kwargs)
        _server(instance).unplug_disk(mountpoint, connection_info["data"]["device_path"])


def _turn_on(instance: Any, network_info: Any, block_device_info: Any) -> None:
    notice.send()  # the network may be so new that its bridge is not there
    try:
        _server(instance).turn_on(
            instance.hostname, [_port(vif) for vif in network_info], _nameservers(network_info), _disks(block_device_info)
        )
    except (OSError, RuntimeError) as error:  # TimeoutError is an OSError
        raise exception.InstancePowerOnFailure(reason=str(error)) from error
    notice.send()  # its namespace is there, for the rules of its security groups


def _server(instance: Any) -> Server:
    return Server(Path(CONF.instances_path, instance.uuid))


def _images() -> Path:
    return Path(CONF.state_path, "machines")


def _machine_image(image_meta: Any) -> str:
    """The name of one of the bed's images; empty for another, which boots nothing."""
    name = str(image_meta.properties.get("os_distro") or "")
    return name if (_images() / f"{name}.json").exists() else ""


def _drive(instance: Any, injected_files: Any, network_info: Any) -> dict[str, bytes]:
    """The files of the config drive, as Nova itself makes them."""
    content = metadata.InstanceMetadata(instance, content=injected_files, network_info=network_info)
    builder = ConfigDriveBuilder(instance_md=content)
    return {path: text.encode() if isinstance(text, str) else text for path, text in builder.mdfiles}


def _port(vif: Any) -> network.Port:
    subnets = [subnet for subnet in vif["network"]["subnets"] if subnet["version"] == 4]
    addresses = [network.with_prefix(ip["address"], subnet["cidr"]) for subnet in subnets for ip in subnet["ips"]]
    gateway = next((subnet["gateway"]["address"] for subnet in subnets if subnet["gateway"]), "")
    return network.Port(vif["id"], vif["network"]["id"], vif["address"], tuple(addresses), str(gateway or ""))


def _nameservers(network_info: Any) -> list[str]:
    return [server["address"] for vif in network_info for subnet in vif["network"]["subnets"] for server in subnet["dns"]]


def _disks(block_device_info: Any) -> dict[str, str]:
    mapping = driver.block_device_info_get_mapping(block_device_info)
    return {one["mount_device"]: one["connection_info"]["data"]["device_path"] for one in mapping}
