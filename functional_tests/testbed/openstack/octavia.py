# SPDX-License-Identifier: Apache-2.0
"""Octavia: its API alone, with the bed's provider, whose load balancers are HAProxy processes of the agent."""

from .. import config
from . import notice
from .site import Site


def start(site: Site) -> None:
    user = site.identity.add_service("octavia", site.urls["octavia"], "load-balancer")
    settings = site.configure("octavia", "octavia.conf", user, database=site.database.create("octavia"))
    policy = site.home("octavia") / "policy.yaml"
    site.ledger.file(policy, config.render("openstack/octavia_policy.yaml"))
    site.manage("octavia-db-manage", "--config-file", settings, "upgrade", "head")
    site.serve("octavia", "octavia.wsgi.api", settings, {notice.VARIABLE: str(site.folder / notice.SOCKET)})
    site.wait("octavia")
