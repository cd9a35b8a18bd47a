# SPDX-License-Identifier: Apache-2.0
"""What becomes of each object: one row for each rule."""

from __future__ import annotations

import pytest

from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.objects.marks import CREATED_BY_US, KEEP, manager, used_by
from k8s_cr_driver.plan.actions import (
    ANNOTATED,
    EXISTED,
    IN_EACH,
    IN_USE,
    Action,
    Answer,
    Contents,
    Do,
    Way,
    decide,
    digest,
    may_go,
    plan,
    why_used,
)
from k8s_cr_driver.plan.field_diff import Change
from tests.instance import BLUE, GREEN, config_map, crontab, crontab_crd, obj


def made(manifest: Object, *users: str, **annotations: str) -> Object:
    """As this instance has applied it; `users` of a shared one."""
    metadata = {
        **manifest["metadata"],
        "uid": "1",
        "labels": {used_by(user): "" for user in users},
        "annotations": {f"k8s-cr-driver/{name}": value for name, value in annotations.items()},
        "managedFields": [{"manager": manager(BLUE), "operation": "Apply", "fieldsV1": {}}],
    }
    return {**manifest, "metadata": metadata}


HOME, CRD, MAP = obj("v1", "Namespace", "home"), crontab_crd(), config_map("a", "home")
TAB = made(crontab("one"))
OURS = {CREATED_BY_US.partition("/")[2]: "true"}
KEPT = {KEEP.partition("/")[2]: "true"}
CRD_OURS, ACCOUNT = made(CRD, BLUE, **OURS), obj("v1", "ServiceAccount", "default", "home")

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
    ("a CRD of its own", CRD_OURS, False, "", Way.DELETE, ""),
    ("a CRD that others use", made(CRD, BLUE, GREEN, **OURS), False, "", Way.LEAVE_TO_OTHERS, GREEN),
    ("what holds an object that is not shared", made(MAP), False, IN_USE, Way.DELETE, ""),
]


@pytest.mark.parametrize(
    ("live", "is_adopted", "held", "way", "why"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_how_an_object_leaves(live: Object, is_adopted: bool, held: str, way: Way, why: str) -> None:
    key = key_of(live)
    keys = frozenset({key}) if is_adopted else frozenset()
    journal = InventoryContent(adopted=keys, members=keys or None)
    decision = decide(journal, BLUE, live, held)
    assert decision.way is way
    assert why in decision.why and bool(why) == bool(decision.why)
    [action] = plan(journal, BLUE, {}, {key: live}, {key: Contents(held)})
    assert action == Action(key, Do.DELETE if way is Way.DELETE else Do.RELEASE, decision.why)
    assert decision.outlives is (way not in (Way.DELETE, Way.GIVE_UP))
    assert bool(may_go(journal, BLUE, (), {key: live})) is not decide(journal, BLUE, live).outlives


@pytest.mark.parametrize(
    ("shared", "held", "wanted"),
    [(made(HOME, BLUE, **OURS), [], [MAP]), (made(HOME, BLUE, **OURS), [made(MAP, **KEPT)], []), (CRD_OURS, [], [TAB])],
    ids=["a Namespace of a wanted object", "a Namespace of a kept object", "a CRD of a wanted object"],
)
def test_what_holds_what_stays_is_released(shared: Object, held: list[Object], wanted: list[Object]) -> None:
    lives = {key_of(one): one for one in (shared, *held)}
    actions = plan(InventoryContent(), BLUE, {key_of(one): Answer(Do.LEAVE) for one in wanted}, lives, {})
    [stays] = [*held, *wanted]
    assert Action(key_of(shared), Do.RELEASE, f"{IN_USE}: {key_of(stays)}") in actions


@pytest.mark.parametrize(
    ("shared", "key", "is_held"),
    [(HOME, key_of(MAP), True), (CRD, key_of(crontab("one")), True), (CRD, key_of(MAP), False), (MAP, key_of(MAP), False)],
)
def test_a_namespace_and_a_crd_hold_objects(shared: Object, key: ObjectKey, is_held: bool) -> None:
    assert why_used(shared, [key]) == (f"{IN_USE}: {key}" if is_held else "")


@pytest.mark.parametrize("do", [Do.CREATE, Do.APPLY, Do.REPLACE, Do.LEAVE, Do.CONFLICT, Do.REFUSE])
def test_the_cluster_decides_about_what_is_wanted(do: Do) -> None:
    key = key_of(TAB)
    assert plan(InventoryContent(), BLUE, {key: Answer(do, "why")}, {key: TAB}, {}) == [Action(key, do, "why")]


def test_a_digest_is_of_what_is_done_and_not_of_counts() -> None:
    one, other = ObjectKey("apps", "Deployment", "default", "web"), key_of(MAP)
    counts = {one: "spec.replicas"}

    def of(*changes: Change, do: Do = Do.APPLY) -> str:
        return digest([Action(other, Do.DELETE, "a reason"), Action(one, do, "", changes)], counts)

    image, count = Change("spec.image", "a", "b"), Change("spec.replicas", 1, 2)
    assert of(image) == of(image, count)
    assert of(count) == of(do=Do.LEAVE)
    assert len({of(image), of(Change("spec.image", "a", "c")), of(image, do=Do.REPLACE), of(do=Do.LEAVE)}) == 4
