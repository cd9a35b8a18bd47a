# SPDX-License-Identifier: Apache-2.0
"""ML2 mechanism driver: every port is bound at once, on every host, and each change wakes the network's agent."""

import uuid
from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.plugins.ml2 import api

from functional_tests.testbed.openstack import notice

_WATCHED = (
    resources.PORT, resources.NETWORK, resources.SUBNET, resources.ROUTER, resources.ROUTER_INTERFACE,
    resources.ROUTER_GATEWAY, resources.FLOATING_IP, resources.SECURITY_GROUP, resources.SECURITY_GROUP_RULE,
)  # fmt: skip


class MechanismDriver(api.MechanismDriver):  # type: ignore[misc]
    """Binds without an agent."""

    resource_provider_uuid5_namespace = uuid.UUID("f3a0f2f4-6a2e-4c8e-8a5b-5d4b1b1f7c11")

    def initialize(self) -> None:
        for resource in _WATCHED:
            for event in (events.AFTER_CREATE, events.AFTER_UPDATE, events.AFTER_DELETE):
                registry.subscribe(_changed, resource, event)

    @property
    def connectivity(self) -> str:
        return str(portbindings.CONNECTIVITY_L2)

    def bind_port(self, context: Any) -> None:
        context.set_binding(
            context.segments_to_bind[0][api.ID],
            portbindings.VIF_TYPE_OVS,
            {portbindings.CAP_PORT_FILTER: True, portbindings.VIF_DETAILS_CONNECTIVITY: portbindings.CONNECTIVITY_L2},
            status=constants.PORT_STATUS_ACTIVE,
        )

    def filter_hosts_with_segment_access(self, context: Any, segments: Any, candidate_hosts: Any, *args: Any) -> set[str]:
        return set(candidate_hosts)


def _changed(resource: str, event: str, trigger: Any, payload: Any = None) -> None:
    notice.send()
