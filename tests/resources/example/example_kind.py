# SPDX-License-Identifier: Apache-2.0
"""How another project teaches the driver a kind: a class, and an entry point that names it."""

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health.model import Health, State, ready


class CronTab(CustomResource):
    group, kind = "stable.example.com", "CronTab"

    def assess(self, live: Object) -> Health:
        runs = (live.get("status") or {}).get("runs", 0)
        return ready() if runs else Health(State.WAITING, "NeverRun", "has not run yet")
