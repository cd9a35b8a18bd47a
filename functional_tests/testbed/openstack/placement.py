# SPDX-License-Identifier: Apache-2.0
"""Placement, which counts what the hypervisors have left."""

from .site import Site


def start(site: Site) -> None:
    user = site.identity.add_service("placement", site.urls["placement"], "placement")
    settings = site.configure("placement", "placement.conf", user, database=site.database.create("placement"))
    site.manage("placement-manage", "--config-file", settings, "db", "sync")
    site.serve("placement", "placement.wsgi.api", settings, {"OS_PLACEMENT_CONFIG_DIR": str(settings.parent)})
    site.wait("placement")
