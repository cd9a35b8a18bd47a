# SPDX-License-Identifier: Apache-2.0
"""A kind that says nothing of itself has no say in any group of hooks."""

from __future__ import annotations

from k8s_cr_driver.resources.hooks import Causes
from k8s_cr_driver.resources.registry import resource_for
from tests.instance import crontab

PLAIN = resource_for(crontab("tab"))


def test_any_count_is_allowed_and_all_vnfcs_may_go_in_no_known_order() -> None:
    scaling = PLAIN.scaling()
    assert (scaling.error(0), scaling.autoscaler(), scaling.max_unavailable(3)) == ("", "", 3)
    assert (scaling.removal_annotations, scaling.removal_order([]), scaling.awaited_revision({})) == ({}, None, "")


def test_it_stands_alone() -> None:
    relations, others = PLAIN.relations(), [crontab("other")]
    assert [*relations.names(), *relations.applied_after(), *relations.deleted_before(others), *relations.pauses(others)] == []
    assert not (relations.is_rotated or relations.sums_up or relations.is_held_up_by(crontab("tab"), others))


def test_nothing_is_asked_made_or_left() -> None:
    assert (PLAIN.changes(), PLAIN.made(crontab("tab")), PLAIN.orphans(), PLAIN.orphaned) == (None, None, None, None)
    assert PLAIN.causes({}) == Causes()
