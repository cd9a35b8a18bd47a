# SPDX-License-Identifier: Apache-2.0
"""A CRD that another instance has left, or that users have made, loses nothing that objects of others need."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from tests.fake_api import FakeApi
from tests.instance import GREEN, crontab_crd
from tests.instance import Instance as Other
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.test_shared_crds import CRD, crd, permitted, tab
from tests.lcm.web import deployment

__all__ = ["permitted"]

STAYS = "crontabs.stable.example.com stays as it is, wider than the manifest"
FORCED = {"adopt-existing": True, "force-conflicts": True}


def fields(cluster: FakeApi) -> set[str]:
    [version] = cluster.get(*CRD)["spec"]["versions"]
    return set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])


@pytest.fixture
def left(cluster: FakeApi) -> FakeApi:
    """The CRD is left by another instance, because a user has an object of its kind."""
    green = Other(cluster.url, GREEN)
    green.reconcile([crd("extra"), tab("greens")])
    cluster.put(tab("users", extra="u"), manager="kubectl")
    green.terminate()
    return cluster


def test_an_instantiate_that_brings_less_leaves_it_as_it_is(
    left: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blue = Instance(left, tmp_path / "old", [deployment(1), crd(), tab("blues")])
    with caplog.at_level(logging.WARNING):
        blue.instantiate()
        assert fields(left) == {"cronSpec", "extra"}
        blue.heal()
    assert fields(left) == {"cronSpec", "extra"}
    assert STAYS in caplog.text
    assert "CronTab.stable.example.com default/users would lose spec.extra" in caplog.text
    blue.terminate()
    assert fields(left) == {"cronSpec", "extra"}
    assert left.names("CronTab") == ["users"]


def test_an_instantiate_that_brings_another_one_is_refused(left: FakeApi, tmp_path: Path) -> None:
    blue = Instance(left, tmp_path / "old", [deployment(1), crd("other"), tab("blues")])
    with pytest.raises(sol_ex.SolException, match=r"takes from objects of others: .* default/users would lose spec\.extra"):
        blue.instantiate()
    assert fields(left) == {"cronSpec", "extra"}
    assert left.find("CronTab", "default", "blues") is None


def test_objects_that_cannot_be_listed_may_need_it(left: FakeApi, tmp_path: Path) -> None:
    left.knobs.denied.add(("list", "stable.example.com", "crontabs", ""))
    blue = Instance(left, tmp_path / "old", [deployment(1), crd(), tab("blues")])
    with pytest.raises(sol_ex.SolException, match=r"default/users|cannot list resource"):
        blue.instantiate()
    assert fields(left) == {"cronSpec", "extra"}


def test_what_nobody_else_needs_is_taken_back_and_changed(cluster: FakeApi, left: FakeApi, tmp_path: Path) -> None:
    left.put(tab("users"), manager="kubectl")
    blue = Instance(left, tmp_path / "old", [deployment(1), crd("other"), tab("blues")])
    blue.instantiate()
    assert fields(left) == {"cronSpec", "other"}


def test_the_last_user_does_not_take_what_the_maker_has_added(
    cluster: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    green = Other(cluster.url, GREEN)
    green.reconcile([crd("extra")])
    blue = Instance(cluster, tmp_path / "old", [deployment(1), crd("extra"), tab("blues")])
    blue.instantiate()
    green.reconcile([crd("extra", "more")])
    cluster.put(tab("users", more="u"), manager="kubectl")
    green.terminate()
    with caplog.at_level(logging.WARNING):
        blue.heal()
        blue.change(make_vnfd(tmp_path / "new", [deployment(1), crd("extra"), tab("blues", extra="x")]))
    assert fields(cluster) == {"cronSpec", "extra", "more"}
    assert STAYS in caplog.text


def test_a_change_may_take_it_with_permission(left: FakeApi, tmp_path: Path) -> None:
    blue = Instance(left, tmp_path / "old", [deployment(1), crd(), tab("blues")])
    blue.instantiate()
    blue.change(make_vnfd(tmp_path / "new", [deployment(1), crd("other"), tab("blues")]), **{"delete-guests": True})
    assert fields(left) == {"cronSpec", "other"}


@pytest.mark.parametrize("verb", ["instantiate", "change"])
def test_a_crd_of_users_is_adopted_by_force_only_if_it_takes_nothing_from_them(
    cluster: FakeApi, tmp_path: Path, verb: str
) -> None:
    cluster.put(crd("extra"), manager="kubectl")
    cluster.put(tab("users", extra="u"), manager="kubectl")
    package: list[Any] = [deployment(1), crd(), tab("blues")]
    blue = Instance(cluster, tmp_path / "old", package if verb == "instantiate" else [deployment(1)])
    if verb == "change":
        blue.instantiate()
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"default/users would lose spec\.extra"):
        if verb == "instantiate":
            blue.instantiate(**FORCED)
        else:
            blue.change(make_vnfd(tmp_path / "new", package), **FORCED)
    assert [one for one in cluster.requests.writes if one.query.get("dryRun") != "All"] == []
    cluster.delete("CronTab", "default", "users")
    if verb == "instantiate":
        blue.instantiate(**FORCED)
    else:
        blue.change(make_vnfd(tmp_path / "again", package), **FORCED)
    assert fields(cluster) == {"cronSpec"}


def test_a_crd_that_does_not_become_narrower_costs_no_list(left: FakeApi, tmp_path: Path) -> None:
    left.requests.clear()
    blue = Instance(left, tmp_path / "old", [deployment(1), crd("extra", "more"), tab("blues")])
    blue.instantiate()
    lists = left.requests.select("GET", watch=False, when=lambda one: one.path.endswith("/crontabs"))
    assert [one for one in lists if "labelSelector" not in one.query] == []
    assert fields(left) == {"cronSpec", "extra", "more"}
    assert crontab_crd()["metadata"]["name"] == CRD[2]
