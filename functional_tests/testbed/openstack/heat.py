# SPDX-License-Identifier: Apache-2.0
"""Heat: API and one engine, with the domain in which it makes users of stacks."""

import secrets

import openstack

from .. import keystone
from .site import Site

OWNER, USER = "heat_stack_owner", "heat_stack_user"
DOMAIN, ADMIN = "heat", "heat_domain_admin"


def start(site: Site) -> None:
    user = site.identity.add_service("heat", f"{site.urls['heat']}/v1/%(project_id)s", "orchestration")
    password = secrets.token_urlsafe(16)
    _domain(site, password)
    settings = site.configure(
        "heat", "heat.conf", user, database=site.database.create("heat"), url=site.urls["heat"], domain=DOMAIN, admin=ADMIN,
        password=password, key=secrets.token_hex(16), username=user.username, userpassword=user.password,
        region=keystone.REGION,
    )  # fmt: skip
    site.manage("heat-manage", "--config-file", settings, "db_sync")
    site.serve("heat", "heat.wsgi.api", settings)
    site.spawn("heat-engine", settings)
    site.wait("heat")


def _domain(site: Site, password: str) -> None:
    identity = openstack.connection.Connection(session=site.identity.session(), region_name=keystone.REGION).identity
    domain = identity.create_domain(name=DOMAIN)
    admin = identity.create_user(name=ADMIN, password=password, domain_id=domain.id)
    identity.assign_domain_role_to_user(domain, admin, identity.find_role("admin"))
    for name in (OWNER, USER):
        identity.create_role(name=name)
