# SPDX-License-Identifier: Apache-2.0
"""What becomes of Helm's hooks: who waits for whom, and what is left out."""

from __future__ import annotations

import pytest

from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.keys import Object, annotations_of
from k8s_cr_driver.scaffold import hooks
from tests.instance import config_map, crontab, deployment, obj

HOOK, WEIGHT = "helm.sh/hook", "helm.sh/hook-weight"
WEBHOOK = obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "guard", webhooks=[])


def job(name: str, times: str, weight: str = "0", kind: str = "Job") -> Object:
    made = obj("batch/v1" if kind == "Job" else "v1", kind, name, spec={"template": {"spec": {"containers": []}}})
    made["metadata"]["annotations"] = {HOOK: times, WEIGHT: weight, "helm.sh/hook-delete-policy": "hook-succeeded"}
    return made


def waits(*objects: Object) -> dict[str, list[str]]:
    """For each object that is left, by its name, the names of those for which it waits."""
    kept, _ = hooks.ordered(objects, "blue")
    return {one["metadata"]["name"]: [key.name for key in dependencies.depends_on(one)] for one in kept}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([job("a", "pre-install"), deployment("web")], {"a": [], "web": ["a"]}),
        ([job("a", "pre-install"), config_map("c"), crontab("t")], {"a": [], "c": [], "t": ["a"]}),
        ([job("a", "pre-install", "5"), job("b", "pre-install,pre-upgrade", "-5")], {"a": ["b"], "b": []}),
        ([job("b", "pre-install"), job("a", "pre-install")], {"b": ["a"], "a": []}),
        ([deployment("web"), job("z", "post-install")], {"web": [], "z": []}),
        ([job("z", "post-install"), job("a", "pre-install"), WEBHOOK], {"z": ["a", "guard"], "a": [], "guard": ["a"]}),
        ([job("z", "post-install", "x")], {"z": []}),
        ([job("t", "test"), job("d", "pre-delete,post-delete"), job("r", "post-rollback")], {}),
        ([job("u", "pre-upgrade"), job("v", "post-upgrade,pre-upgrade")], {}),
        ([job("p", "pre-install", kind="Pod"), deployment("web")], {"p": [], "web": ["p"]}),
        ([obj("batch/v1", "CronJob", "c", spec={}), job("a", "pre-install")], {"c": ["a"], "a": []}),
    ],
)
def test_who_waits_for_whom(objects: list[Object], expected: dict[str, list[str]]) -> None:
    assert waits(*objects) == expected


def test_a_hook_is_none_any_more_and_keeps_its_other_annotations() -> None:
    account = config_map("c")
    account["metadata"]["annotations"] = {HOOK: "pre-install", "a": "b"}
    kept, [choice] = hooks.ordered([account], "blue")
    assert (annotations_of(kept[0]), choice.choice) == ({"a": "b"}, "an object as any other")


def test_references_name_the_namespace_of_the_instance() -> None:
    kept, _ = hooks.ordered([job("a", "pre-install"), deployment("web")], "blue")
    assert annotations_of(kept[1]) == {dependencies.DEPENDS_ON: "batch/namespaces/blue/Job/a"}


def test_what_is_left_out_is_named_with_the_reason() -> None:
    _, choices = hooks.ordered([job("t", "test"), job("u", "post-upgrade")], "blue")
    assert [(one.subject, one.choice, one.why.split(",")[0]) for one in choices] == [
        ("Job.batch t", "left out", "Helm's hook test"),
        ("Job.batch u", "left out", "Helm's hook post-upgrade"),
    ]


def test_objects_that_are_no_hooks_stay_the_same() -> None:
    objects = [config_map("a"), deployment("web")]
    kept, choices = hooks.ordered(objects, "blue")
    assert (kept, choices) == (objects, [])
