# SPDX-License-Identifier: Apache-2.0
"""Nova: API, conductor, scheduler, and one compute service, whose driver boots servers as machines of the bed."""

from pathlib import Path

from ..keystone import Credentials
from . import notice
from .site import Site

HOST = "hypervisor1"


def start(site: Site) -> None:
    """All but the compute service, which wants the other services to be up."""
    user = site.identity.add_service("nova", f"{site.urls['nova']}/v2.1", "compute")
    settings = site.configure("nova", "nova.conf", user, databases=_databases(site), **_values())
    _make_schema(site, settings, site.database.create("nova_cell0"))
    # api-paste.ini comes first: Nova takes it for the first of its configuration files.
    files = f"{site.environment}/etc/nova/api-paste.ini;{settings}"
    site.serve("nova", "nova.wsgi.osapi_compute", settings, {"OS_NOVA_CONFIG_FILES": files, "OS_NOVA_CONFIG_DIR": "/"})
    for name in ("nova-conductor", "nova-scheduler"):
        site.spawn(name, settings)
    _configure_compute(site, user)
    site.wait("nova")


def start_compute(site: Site) -> None:
    """The compute service; returns when servers can be scheduled to it."""
    home = site.home("nova")
    (home / "instances").mkdir()
    process = site.run_module(
        "nova-compute", "functional_tests.testbed.openstack.plugins.nova_compute", home / "nova-compute.conf",
        {notice.VARIABLE: str(site.folder / notice.SOCKET)},
    )  # fmt: skip
    session = site.identity.session()
    services = f"{site.urls['nova']}/v2.1/os-services?binary=nova-compute"

    def is_up() -> bool:
        return any(service["state"] == "up" for service in session.get(services).json()["services"])

    process.wait_until(is_up, 120, "nova-compute to report itself")
    site.manage("nova-manage", "--config-file", home / "nova.conf", "cell_v2", "discover_hosts")
    process.wait_until(lambda: _has_inventory(site), 60, "nova-compute to report what it has")


def _has_inventory(site: Site) -> bool:
    session, url = site.identity.session(), site.urls["placement"]
    providers = session.get(f"{url}/resource_providers").json()["resource_providers"]
    return any(session.get(f"{url}/resource_providers/{one['uuid']}/inventories").json()["inventories"] for one in providers)


def _databases(site: Site) -> str:
    urls = {"api_database": site.database.create("nova_api"), "database": site.database.create("nova")}
    return "".join(f"[{section}]\nconnection = {url}\nmax_pool_size = 8\n\n" for section, url in urls.items())


def _values() -> dict[str, object]:
    return {"host": HOST}


def _configure_compute(site: Site, user: Credentials) -> None:
    """Without a data base, which a compute service must not reach."""
    site.configure("nova", "nova-compute.conf", user, databases="", **_values())


def _make_schema(site: Site, settings: Path, cell0: str) -> None:
    for arguments in (
        ("api_db", "sync"),
        ("cell_v2", "map_cell0", "--database_connection", cell0),
        ("db", "sync"),
        ("cell_v2", "create_cell", "--name", "cell1"),
    ):
        site.manage("nova-manage", "--config-file", settings, *arguments)
