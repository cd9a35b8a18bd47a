# SPDX-License-Identifier: Apache-2.0
"""Which owners of what stays are read."""

from __future__ import annotations

import functools

import pytest

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, config_map, controlled_by
from tests.writes.claims import volume


def _own(references: list[Object], live: Object) -> None:
    live["metadata"]["ownerReferences"] = references


@pytest.mark.parametrize("answer", [None, 414, 431, 400])
def test_an_owner_with_a_name_that_is_too_long_for_a_path_ends_no_run(api: FakeApi, answer: int | None) -> None:
    """The API server asks of the name of an owner only that it is not empty. It accepts 1 MiB of headers, a proxy less."""
    blue = Instance(api.url)
    blue.reconcile([config_map("b"), volume()])
    reference = {**controlled_by(api.put(config_map("owner"), manager="user")), "name": 100_000 * "a"}
    place = "PersistentVolumeClaim", "default", "volume"
    api.edit(*place, lambda live: live["metadata"].update(ownerReferences=[reference]))
    if answer:
        api.fail(faults.status(answer), method="GET", path="/configmaps/aaaaa", times=10**6)
    blue.reconcile([volume()])
    assert api.find("ConfigMap", "default", "b") is None


def test_many_owners_of_one_object_are_not_all_read_again_for_each_that_is_deleted(api: FakeApi) -> None:
    """As of a ConfigMap that all custom resources of an operator share."""
    blue, owners = Instance(api.url, seconds=60), [config_map(f"owner-{number}") for number in range(40)]
    blue.reconcile([*owners, config_map("shared")])
    lives = [api.get("ConfigMap", "default", one["metadata"]["name"]) for one in owners]
    references = [{**controlled_by(live), "controller": False} for live in lives]
    api.edit("ConfigMap", "default", "shared", functools.partial(_own, references))
    api.requests.clear()
    blue.reconcile([config_map("shared")])
    assert len(api.requests.select("GET", "/configmaps/owner-")) < 5 * len(owners)
