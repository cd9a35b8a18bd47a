# SPDX-License-Identifier: Apache-2.0
"""Neutron with ML2, and the agent that makes real what it describes.

Only the API runs of Neutron itself: the bed's mechanism driver binds every port at once, and its L3 plugin reports floating
IPs as soon as they are associated. Both wake the agent, which reads the whole from the API.
"""

import json
import os
import sys

from .. import paths
from . import notice
from .site import Site


def start(site: Site) -> None:
    user = site.identity.add_service("neutron", site.urls["neutron"], "network")
    settings = site.configure("neutron", "neutron.conf", user, database=site.database.create("neutron"))
    site.manage("neutron-db-manage", "--config-file", settings, "upgrade", "heads")
    variables = {"OS_NEUTRON_CONFIG_FILES": str(settings), notice.VARIABLE: str(site.folder / notice.SOCKET)}
    site.serve("neutron", "neutron.wsgi.api", settings, variables)
    site.wait("neutron")


def start_agent(site: Site) -> None:
    """In the project's own virtual environment, with the administrator's access."""
    site.ledger.setting("net/ipv4/ip_forward", "1")
    file = site.ledger.file(site.folder / "agent.json", json.dumps(site.identity.environment()))
    site.ledger.spawn(
        "network-agent",
        [sys.executable, "-m", "functional_tests.testbed.openstack.agent", site.folder, file],
        env=os.environ | {"PYTHONPATH": str(paths.PROJECT)},
    )
