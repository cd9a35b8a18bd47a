# SPDX-License-Identifier: Apache-2.0
"""Cinder, whose volumes are sparse files."""

from .site import Site


def start(site: Site) -> None:
    home = site.home("cinder")
    (home / "volumes").mkdir()
    user = site.identity.add_service("cinder", f"{site.urls['cinder']}/v3", "block-storage", "volumev3")
    database = site.database.create("cinder")
    settings = site.configure("cinder", "cinder.conf", user, database=database, glance=site.urls["glance"])
    site.manage("cinder-manage", "--config-file", settings, "db", "sync")
    site.serve("cinder", "cinder.wsgi.api", settings)
    for name in ("cinder-scheduler", "cinder-volume"):
        site.spawn(name, settings)
    site.wait("cinder")
