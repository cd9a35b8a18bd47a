# SPDX-License-Identifier: Apache-2.0
"""What becomes of each object: one row for each rule."""

from __future__ import annotations

import pytest

from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.objects.marks import CREATED_BY_US, KEEP, manager, used_by
from k8s_cr_driver.plan.actions import Action, Answer, Contents, Do, digest, may_go, plan
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

ROWS: list[tuple[str, list[Object], list[Object], str, Do, str]] = [
    ("an object of the instance", [made(MAP)], [], "", Do.DELETE, ""),
    ("a kept object", [made(MAP, **KEPT)], [], "", Do.RELEASE, "annotated with"),
    ("a Namespace of its own", [made(HOME, BLUE, **OURS)], [], "", Do.DELETE, ""),
    ("a Namespace that it has not made", [made(HOME, BLUE)], [], "", Do.RELEASE, "existed before"),
    ("a Namespace that others use", [made(HOME, BLUE, GREEN, **OURS)], [], "", Do.RELEASE, GREEN),
    ("a Namespace with objects of others", [made(HOME, BLUE, **OURS)], [], "has a Pod", Do.RELEASE, "has a Pod"),
    ("a Namespace of a wanted object", [made(HOME, BLUE, **OURS)], [MAP], "", Do.RELEASE, "holds objects of this"),
    ("a Namespace of a kept object", [made(HOME, BLUE, **OURS), made(MAP, **KEPT)], [], "", Do.RELEASE, "holds objects of"),
    ("a CRD of its own", [made(CRD, BLUE, **OURS)], [], "", Do.DELETE, ""),
    ("a CRD of a wanted object", [made(CRD, BLUE, **OURS)], [crontab("one")], "", Do.RELEASE, "holds objects of this"),
]


@pytest.mark.parametrize(("live", "wanted", "others", "do", "why"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_becomes_of_what_is_not_wanted(live: list[Object], wanted: list[Object], others: str, do: Do, why: str) -> None:
    lives = {key_of(one): one for one in live}
    answers = {key_of(one): Answer(Do.LEAVE) for one in wanted}
    key = key_of(live[0])
    [action] = [one for one in plan(InventoryContent(), BLUE, answers, lives, {key: Contents(others)}) if one.key == key]
    assert action.do is do
    assert why in action.why


def test_an_adopted_object_stays() -> None:
    key = key_of(MAP)
    journal = InventoryContent(adopted=frozenset({key}), members=frozenset({key}))
    [action] = plan(journal, BLUE, {}, {key: made(MAP)}, {})
    assert action.do is Do.RELEASE
    assert not may_go(journal, BLUE, (), {key: made(MAP)})


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
