# SPDX-License-Identifier: Apache-2.0
"""The whole cloud: its services side by side, then what needs them, then what a tenant finds in it."""

from concurrent.futures import ThreadPoolExecutor

from builds.progress import step

from ..ledger import Ledger
from . import cinder, glance, heat, images, neutron, nova, octavia, offer, placement
from .site import Site


def up(ledger: Ledger) -> dict[str, str]:
    """Start it; the variable with which clients find its clouds.yaml."""
    with ThreadPoolExecutor() as pool:
        prepared = pool.submit(images.prepare)
        site = Site.prepare(ledger)
        with step("Starting Glance, Placement, Nova, Neutron, Cinder, Octavia and Heat"):
            modules = (nova, neutron, heat, cinder, octavia, glance, placement)
            services = [pool.submit(module.start, site) for module in modules]
            for service in services:
                service.result()
        prepared.result()
    with step("Starting the cloud's hypervisor and network"):
        neutron.start_agent(site)
        nova.start_compute(site)
    with step("Making the cloud's flavors, images, external network and tenant"):
        return {"OS_CLIENT_CONFIG_FILE": str(offer.make(site))}
