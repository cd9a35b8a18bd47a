# SPDX-License-Identifier: Apache-2.0
"""Objects of the instance that a VNFC which is no Pod owns while a heal replaces it."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.replace import Replacement
from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, crontab_crd, labelled, wait_for
from tests.ownership.claims import assert_outlives, held_crontab, is_going, volume


@pytest.mark.usefixtures("soon")
def test_a_claim_that_a_machine_owns_while_a_heal_replaces_it_outlives_it(api: FakeApi) -> None:
    """Its controllers have a finalizer, as those of Cluster API have, and own others by it."""
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), config_map("b"), volume()])
    uid = str(api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"])
    machine = api.put(labelled(held_crontab(), app="web"), manager="operator")
    run = blue.start([config_map("b")], prune=False, replacement=Replacement([("app=web", [machine])]))
    wait_for(api, lambda: is_going(api, "CronTab", "a"))
    assert_outlives(api, uid, run, machine, ("CronTab", "a"))
