# SPDX-License-Identifier: Apache-2.0
"""A change of package that makes a CRD narrower takes nothing from the objects of other instances and of users."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.fake_api.recording import Request
from tests.instance import GREEN, config_map, crontab, crontab_crd
from tests.instance import Instance as Other
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.web import deployment


@pytest.fixture(autouse=True)
def permitted() -> Iterator[None]:
    cfg.CONF.set_override("allow_delete_guests", True, "k8s_cr")
    yield
    cfg.CONF.clear_override("allow_delete_guests", "k8s_cr")


CRD = ("CustomResourceDefinition", None, "crontabs.stable.example.com")


def crd(*names: str, **types: str) -> Object:
    """With these fields, of type string if no other is given."""
    made = crontab_crd()
    properties = {name: {"type": types.get(name, "string")} for name in ("cronSpec", *names, *types)}
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = properties
    return made


def limited(**keywords: Any) -> Object:
    """With keywords that the objects of these tests meet."""
    made = crd("extra")
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["extra"] |= keywords
    return made


def with_version(made: Object, name: str) -> Object:
    found = copy.deepcopy(made)
    found["spec"]["versions"].append({**copy.deepcopy(found["spec"]["versions"][0]), "name": name, "storage": False})
    return found


def tab(name: str, **spec: Any) -> Object:
    made = crontab(name)
    made["spec"] |= spec
    return made


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    """The instance that has brought the CRD, with the field `extra`, in two versions."""
    blue = Instance(cluster, tmp_path / "old", [deployment(1), with_version(crd("extra"), "v2"), tab("blues", extra="b")])
    blue.instantiate()
    return blue


@pytest.fixture
def green(cluster: FakeApi, blue: Instance) -> Other:
    green = Other(cluster.url, GREEN)
    green.reconcile([with_version(crd("extra"), "v2"), tab("greens", extra="g")])
    return green


def change(blue: Instance, folder: Path, new: Object, **params: Any) -> None:
    blue.change(make_vnfd(folder / "new", [deployment(1), new, tab("blues")]), **params)


def refused(cluster: FakeApi, blue: Instance, folder: Path, new: Object, **params: Any) -> str:
    """The error of a change that writes nothing."""
    before = cluster.get(*CRD)
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException) as raised:
        change(blue, folder, new, **params)
    assert [one for one in cluster.requests.writes if one.query.get("dryRun") != "All"] == []
    assert cluster.get(*CRD) == before
    return str(raised.value.detail)


def looks(cluster: FakeApi) -> list[Request]:
    """What is asked besides the one dry run of each object that differs: more of them, and lists of all objects of the kind."""
    asked = cluster.requests.select(when=lambda one: one.query.get("dryRun") == "All")
    dry_runs = [one for number, one in enumerate(asked) if one.path in [other.path for other in asked[:number]]]
    lists = cluster.requests.select("GET", watch=False, when=lambda one: one.path.endswith("/crontabs"))
    return dry_runs + [one for one in lists if "labelSelector" not in one.query]


@pytest.mark.usefixtures("green")
@pytest.mark.parametrize(
    ("new", "words"),
    [
        (with_version(crd(), "v2"), "CronTab.stable.example.com default/greens would lose spec.extra"),
        (with_version(crd(extra="integer"), "v2"), "default/greens could not be written any more because of spec.extra"),
        (crd("extra"), "other VNF instances use it, and the change does not only add to it: version v2 is not served any more"),
        (with_version(limited(maxLength=9), "v2"), "does not only add to it: spec.extra (v2) has another maxLength"),
        (with_version(limited(default="x"), "v2"), "does not only add to it: spec.extra (v2) has another default"),
        (
            with_version(limited(**{"x-kubernetes-validations": [{"rule": "false"}]}), "v2"),
            "does not only add to it: spec.extra (v2) has other x-kubernetes-validations",
        ),
    ],
    ids=["field", "type", "version", "limit", "default", "rule"],
)
def test_what_takes_from_another_instance_is_refused_before_anything_is_written(
    cluster: FakeApi, blue: Instance, tmp_path: Path, new: Object, words: str
) -> None:
    for number, params in enumerate(({}, {"delete-guests": True})):
        error = refused(cluster, blue, tmp_path / str(number), new, **params)
        assert words in error
        assert "CustomResourceDefinition.apiextensions.k8s.io crontabs.stable.example.com: " in error
        assert "Bring a CRD that only adds to the one on the cluster" in error
        assert GREEN not in error
    assert cluster.get("CronTab", "default", "greens")["spec"]["extra"] == "g"


def test_what_only_adds_is_applied_though_others_use_it(
    cluster: FakeApi, blue: Instance, green: Other, tmp_path: Path
) -> None:
    cluster.requests.clear()
    change(blue, tmp_path, with_version(crd("extra", "more"), "v2"))
    [version, _] = cluster.get(*CRD)["spec"]["versions"]
    assert "more" in version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert looks(cluster) == []
    green.reconcile([with_version(crd("extra"), "v2"), tab("greens", extra="g")])


def test_an_object_of_a_user_is_protected_unless_the_request_permits_the_loss(
    cluster: FakeApi, blue: Instance, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.put(tab("users", extra="u"), manager="kubectl")
    error = refused(cluster, blue, tmp_path, with_version(crd(), "v2"))
    assert "default/users would lose spec.extra" in error
    assert "or give a new change of package additionalParams delete-guests: true" in error
    with caplog.at_level(logging.WARNING):
        change(blue, tmp_path / "again", with_version(crd(), "v2"), **{"delete-guests": True})
    assert "default/users would lose spec.extra" in caplog.text


def test_a_narrower_schema_without_other_users_is_a_warning(
    cluster: FakeApi, blue: Instance, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    owner = {name: cluster.get("CronTab", "default", "blues")["metadata"][name] for name in ("name", "uid")}
    made = tab("made-by-its-controller", extra="c")
    made["metadata"]["ownerReferences"] = [{"apiVersion": "stable.example.com/v1", "kind": "CronTab", **owner}]
    cluster.put(made, manager="controller")
    cluster.put(tab("users"), manager="kubectl")
    with caplog.at_level(logging.WARNING):
        change(blue, tmp_path, crd())
    [text] = [one.getMessage() for one in caplog.records if "becomes narrower" in one.getMessage()]
    assert "spec.extra (v1) is not in the schema" in text
    assert "version v2 is not served any more" in text
    assert blue.inst.vnfdId == "new"


def test_not_even_a_heal_by_force_takes_from_objects_of_users(cluster: FakeApi, blue: Instance) -> None:
    added = with_version(crd("extra", "theirs"), "v2")["spec"]["versions"]
    cluster.edit(*CRD, lambda live: live["spec"].update(versions=added), manager="kubectl")
    cluster.put(tab("users", theirs="u"), manager="kubectl")
    with pytest.raises(sol_ex.SolException, match=r"default/users would lose spec\.theirs"):
        blue.heal(**{"force-conflicts": True})
    assert cluster.get("CronTab", "default", "users")["spec"]["theirs"] == "u"


def test_a_rollback_leaves_what_objects_of_others_need_by_now(
    cluster: FakeApi, blue: Instance, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored = blue.inst.obj_clone()
    change(blue, tmp_path, with_version(crd("extra", "more"), "v2"))
    cluster.put(tab("users", more="u"), manager="kubectl")
    blue.inst = stored
    with caplog.at_level(logging.WARNING):
        blue.roll_back_change()
    [version, _] = cluster.get(*CRD)["spec"]["versions"]
    assert "more" in version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert "the rollback leaves it as it is" in caplog.text
    assert cluster.get("CronTab", "default", "blues")["spec"]["extra"] == "b"


def test_a_change_whose_crd_stays_reads_it_and_asks_nothing_more(cluster: FakeApi, blue: Instance, tmp_path: Path) -> None:
    cluster.put(tab("users", extra="u"), manager="kubectl")
    cluster.requests.clear()
    change(blue, tmp_path, with_version(crd("extra"), "v2"))
    assert len(cluster.requests.select("GET", "/customresourcedefinitions", watch=False)) == 1
    assert looks(cluster) == []


def test_a_change_without_a_crd_costs_no_request_more(cluster: FakeApi, tmp_path: Path) -> None:
    plain = Instance(cluster, tmp_path / "old", [deployment(1), config_map("a")])
    plain.instantiate()
    cluster.requests.clear()
    plain.change(make_vnfd(tmp_path / "new", [deployment(1), config_map("a", x="2")]))
    assert cluster.requests.select(path="/customresourcedefinitions") == []
