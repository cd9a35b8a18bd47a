# SPDX-License-Identifier: Apache-2.0
"""How an object leaves its instance: one row for each rule."""

from __future__ import annotations

import pytest

from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.objects.keys import Object, key_of
from k8s_cr_driver.plan.decision import ANNOTATED, EXISTED, IN_EACH, IN_USE, Way, decide, holds
from tests.instance import BLUE, GREEN, config_map, crontab, crontab_crd, obj
from tests.plan.test_actions import KEPT, OURS, made

HOME, CRD, MAP = obj("v1", "Namespace", "home"), crontab_crd(), config_map("a", "home")
ACCOUNT = obj("v1", "ServiceAccount", "default", "home")

ROWS: list[tuple[str, Object, bool, str, Way, str]] = [
    ("an object of its own", made(MAP), False, "", Way.DELETE, ""),
    ("a kept object", made(MAP, **KEPT), False, "", Way.KEEP, ANNOTATED),
    ("an adopted object", made(MAP), True, "", Way.GIVE_BACK, EXISTED),
    ("an adopted object that is to be kept", made(MAP, **KEPT), True, "", Way.GIVE_BACK, EXISTED),
    ("an adopted Namespace that others use", made(HOME, BLUE, GREEN), True, "", Way.LEAVE_TO_OTHERS, EXISTED),
    ("what Kubernetes puts into each Namespace", made(ACCOUNT), False, "", Way.GIVE_UP, IN_EACH),
    ("a Namespace of its own", made(HOME, BLUE, **OURS), False, "", Way.DELETE, ""),
    ("a kept Namespace", made(HOME, BLUE, **OURS, **KEPT), False, "", Way.KEEP, ANNOTATED),
    ("a Namespace that others use", made(HOME, BLUE, GREEN, **OURS), False, IN_USE, Way.LEAVE_TO_OTHERS, GREEN),
    ("a Namespace that holds something", made(HOME, BLUE, **OURS), False, "it has a Pod", Way.LEAVE, "it has a Pod"),
    ("a Namespace that no instance has made", made(HOME, BLUE), False, "", Way.LEAVE, EXISTED),
    ("a CRD of its own", made(CRD, BLUE, **OURS), False, "", Way.DELETE, ""),
    ("a CRD that others use", made(CRD, BLUE, GREEN, **OURS), False, "", Way.LEAVE_TO_OTHERS, GREEN),
    ("what holds an object that is not shared", made(MAP), False, IN_USE, Way.DELETE, ""),
]


@pytest.mark.parametrize(
    ("live", "is_adopted", "held", "way", "why"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_how_an_object_leaves(live: Object, is_adopted: bool, held: str, way: Way, why: str) -> None:
    adopted = frozenset({key_of(live)}) if is_adopted else frozenset()
    decision = decide(InventoryContent(adopted=adopted), BLUE, live, held)
    assert decision.way is way
    assert why in decision.why and bool(why) == bool(decision.why)


@pytest.mark.parametrize(
    ("live", "way", "outlives"),
    [(made(MAP), Way.DELETE, False), (made(ACCOUNT), Way.GIVE_UP, False), (made(MAP, **KEPT), Way.KEEP, True)],
)
def test_what_keeps_its_namespace(live: Object, way: Way, outlives: bool) -> None:
    decision = decide(InventoryContent(), BLUE, live)
    assert (decision.way, decision.outlives) == (way, outlives)
    assert holds(HOME, [key_of(live)])


def test_a_crd_holds_the_objects_of_its_kind() -> None:
    assert holds(CRD, [key_of(crontab("one"))])
    assert not holds(CRD, [key_of(MAP)])
    assert not holds(MAP, [key_of(MAP)])
