# SPDX-License-Identifier: Apache-2.0
"""Glance, with images in files."""

from .site import Site


def start(site: Site) -> None:
    home = site.home("glance")
    for name in ("images", "staging", "tasks"):
        (home / name).mkdir()
    user = site.identity.add_service("glance", site.urls["glance"], "image")
    database = site.database.create("glance")
    settings = site.configure("glance", "glance-api.conf", user, database=database, url=site.urls["glance"])
    site.manage("glance-manage", "--config-file", settings, "db_sync")
    site.serve("glance", "glance.wsgi.api", settings, {"OS_GLANCE_CONFIG_DIR": str(home)})
    site.wait("glance")
