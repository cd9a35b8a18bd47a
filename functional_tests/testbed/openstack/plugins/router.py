# SPDX-License-Identifier: Apache-2.0
"""Neutron's own L3 plugin, and what its agent would report: the status of floating IPs, and bound ports of routers.

Without it a floating IP stays DOWN, and Cluster API Provider OpenStack waits for ACTIVE.
"""

from typing import Any

from neutron.services.l3_router import l3_router_plugin
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins import directory


class Router(l3_router_plugin.L3RouterPlugin):  # type: ignore[misc]
    """Settles at once."""

    def create_floatingip(self, context: Any, floatingip: Any) -> Any:
        return self._settled(context, super().create_floatingip(context, floatingip))

    def update_floatingip(self, context: Any, id: str, floatingip: Any) -> Any:
        return self._settled(context, super().update_floatingip(context, id, floatingip))

    def add_router_interface(self, context: Any, router_id: str, interface_info: Any = None) -> Any:
        info = super().add_router_interface(context, router_id, interface_info)
        port = {"port": {portbindings.HOST_ID: "network"}}
        directory.get_plugin().update_port(context.elevated(), info["port_id"], port)
        return info

    def _settled(self, context: Any, floating_ip: Any) -> Any:
        used = bool(floating_ip.get("port_id"))
        status = constants.FLOATINGIP_STATUS_ACTIVE if used else constants.FLOATINGIP_STATUS_DOWN
        if floating_ip["status"] != status:
            self.update_floatingip_status(context.elevated(), floating_ip["id"], status)
            floating_ip["status"] = status
        return floating_ip
