# SPDX-License-Identifier: Apache-2.0
"""What tenants find in the cloud: flavors, images, an external network, and for each a project of its own with a user."""

import secrets
from pathlib import Path

import openstack
import yaml

from .. import keystone
from . import images
from .site import Site

# RAM in MiB, and processors; nothing is reserved on this host for them.
FLAVORS = {"small": (512, 1), "node": (4096, 2)}
EXTERNAL = "external"
# Beside the bed's own network, for the same reason set aside by RFC 2544.
SUBNET, GATEWAY = "198.18.214.0/24", "198.18.214.1"
POOL = {"start": "198.18.214.10", "end": "198.18.214.250"}
UNLIMITED = -1
"""A quota of the tenant, until a test lowers it."""
_COMPUTE = ("instances", "cores", "ram", "server_groups")
_NETWORK = ("networks", "subnets", "ports", "routers", "floating_ips", "security_groups", "security_group_rules")
TENANT, OTHER = "tenant", "other"
"""The names of two projects, and of the user of each."""
OF_NODES = ("masters", "volumes", "kubespray")
"""Of projects with clusters on servers, each of which one module of tests has to itself."""


def make(site: Site) -> Path:
    """The path of a clouds.yaml with the cloud `admin`, and that of each tenant."""
    tenants = [keystone.Credentials(name, secrets.token_urlsafe(16), name) for name in (TENANT, OTHER, *OF_NODES)]
    connection = connect(site)
    for name, (ram, vcpus) in FLAVORS.items():
        connection.compute.create_flavor(name=name, ram=ram, vcpus=vcpus, disk=10)
    images.publish(site, connection)
    connection.block_storage.create_type(name="files")
    _external_network(connection)
    for tenant in tenants:
        _tenant(connection, tenant)
    clouds = {"admin": _cloud(site, site.identity.admin), **{one.project: _cloud(site, one) for one in tenants}}
    return site.ledger.file(site.folder / "clouds.yaml", yaml.safe_dump({"clouds": clouds}))


def connect(site: Site) -> openstack.connection.Connection:
    """The administrator's."""
    return openstack.connection.Connection(session=site.identity.session(), region_name=keystone.REGION)


def _external_network(connection: openstack.connection.Connection) -> None:
    made = connection.network.create_network(
        name=EXTERNAL, is_router_external=True, is_shared=True, provider_network_type="flat",
        provider_physical_network="outside",
    )  # fmt: skip
    connection.network.create_subnet(
        network_id=made.id, name=EXTERNAL, ip_version=4, cidr=SUBNET, gateway_ip=GATEWAY, is_dhcp_enabled=False,
        allocation_pools=[POOL],
    )  # fmt: skip


def _tenant(connection: openstack.connection.Connection, tenant: keystone.Credentials) -> None:
    project = connection.identity.create_project(name=tenant.project, domain_id="default")
    user = connection.identity.create_user(
        name=tenant.username, password=tenant.password, domain_id="default", default_project_id=project.id
    )
    for role in ("member", "heat_stack_owner"):
        connection.identity.assign_project_role_to_user(project, user, connection.identity.find_role(role))
    connection.compute.update_quota_set(project.id, **dict.fromkeys(_COMPUTE, UNLIMITED))
    connection.network.update_quota(project.id, **dict.fromkeys(_NETWORK, UNLIMITED))


def _cloud(site: Site, user: keystone.Credentials) -> dict[str, object]:
    return {
        "region_name": keystone.REGION,
        "auth": {
            "auth_url": site.identity.url, "username": user.username, "password": user.password,
            "project_name": user.project, "user_domain_id": "default", "project_domain_id": "default",
        },
    }  # fmt: skip
