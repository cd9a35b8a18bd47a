# SPDX-License-Identifier: Apache-2.0
"""What requests say of servers that Tacker makes by Heat, whichever cluster they become."""

from __future__ import annotations

from collections.abc import Iterable

import openstack

from .client import Body

USER = "nodeadmin"
"""Who logs in at a server."""
USER_DATA = {
    "lcm-operation-user-data": "./UserData/user_data.py",
    "lcm-operation-user-data-class": "StandardUserData",
}


def connection_info(tenant: openstack.connection.Connection) -> Body:
    """The VimConnectionInfo of the project."""
    login = tenant.config.config["auth"]
    return {
        "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
        "interfaceInfo": {"endpoint": login["auth_url"]},
        "accessInfo": {
            "username": login["username"],
            "password": login["password"],
            "region": tenant.config.region_name,
            "project": login["project_name"],
            "projectDomain": "Default",
            "userDomain": "Default",
        },
    }


def links(network: str, vdus: Iterable[str]) -> list[Body]:
    """The extVirtualLinks that give each server of these VDUs an address in the network."""
    addresses = {"ipAddresses": [{"type": "IPV4", "numDynamicAddresses": 1}]}
    protocol = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": addresses}
    return [
        {
            "id": vdu,
            "resourceId": network,
            "extCps": [{"cpdId": f"{vdu}_CP1", "cpConfig": {"1": {"cpProtocolData": [protocol]}}}],
        }
        for vdu in vdus
    ]


def group(vdu: str) -> Body:
    """The servers of a VDU, reached by their floating IPs."""
    return {"vdu_id": vdu, "ssh_cp_name": f"{vdu}_CP1_floating_ip", "nic_cp_name": f"{vdu}_CP1", "username": USER}
