# SPDX-License-Identifier: Apache-2.0
"""Which of Helm's hooks belong to an installation."""

from __future__ import annotations

import pytest

from k8s_cr_driver.package import helm_hooks
from tests.instance import config_map


@pytest.mark.parametrize(
    ("hook", "foreign"),
    [
        ("", ""),
        ("pre-install", ""),
        ("post-install,post-upgrade", ""),
        ("pre-upgrade", ""),
        ("crd-install", ""),
        ("post-install, pre-delete", ""),
        ("test", "test"),
        ("test-success", "test-success"),
        ("pre-delete", "pre-delete"),
        ("pre-rollback,post-delete", "post-delete, pre-rollback"),
        ("of-a-later-helm", "of-a-later-helm"),
    ],
)
def test_a_hook_of_another_time_than_an_installation(hook: str, foreign: str) -> None:
    obj = config_map("a")
    obj["metadata"]["annotations"] = {helm_hooks.HOOK: hook}
    assert helm_hooks.foreign(obj) == foreign
    assert helm_hooks.applied([obj]) == ([] if foreign else [obj])
    for are_applied in (True, False):
        assert len(helm_hooks.warnings([obj], are_applied=are_applied)) == bool(foreign)


def test_an_object_without_the_annotation_is_no_hook() -> None:
    assert helm_hooks.foreign(config_map("a")) == ""
