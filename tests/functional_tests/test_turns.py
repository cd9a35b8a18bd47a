# SPDX-License-Identifier: Apache-2.0
"""Tests that say so have a part of the bed to themselves, whichever process they run in; the others share it."""

from concurrent.futures import ThreadPoolExecutor, TimeoutError
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from functional_tests import turns
from functional_tests.families import BROUGHT, FOLDER, PROVIDER
from functional_tests.testbed import paths


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path)


def item(file: str, *alone: str) -> Any:
    """A test in that file of the functional tests."""
    marks = [pytest.mark.alone(*alone)] if alone else []
    return SimpleNamespace(path=FOLDER / file, iter_markers=lambda name: [mark.mark for mark in marks])


def run(one: Any) -> None:
    with turns.turn(one):
        pass


def waits(one: Any, other: Any, seconds: float) -> bool:
    """Does one wait for so many seconds while the other runs, and run after it?"""
    with ThreadPoolExecutor() as pool:
        with turns.turn(other):
            running = pool.submit(run, one)
            try:
                running.result(seconds)
            except TimeoutError:
                has_waited = True
            else:
                has_waited = False
        running.result(10)
    return has_waited


DYING_CONDUCTOR = item("cluster_api/test_conductors.py", "tacker")
STOPPED_PROVIDER = item("cluster_api/test_stopped_provider.py", PROVIDER)
SHARED, KUBERNETES_ONLY = item("core/test_heal.py"), item("faults/test_requests.py")
CONDUCTORS, CONTROL_PLANE = item("recovery/test_crashes.py", "tacker"), item("testbed/test_restart.py", "kubernetes")


@pytest.mark.parametrize(
    ("one", "other", "does"),
    [
        (SHARED, SHARED, False),
        (CONDUCTORS, SHARED, True),
        (SHARED, CONDUCTORS, True),
        (CONDUCTORS, CONDUCTORS, True),
        (KUBERNETES_ONLY, CONDUCTORS, False),
        (CONTROL_PLANE, KUBERNETES_ONLY, True),
        (SHARED, CONTROL_PLANE, True),
        (DYING_CONDUCTOR, STOPPED_PROVIDER, True),
        (item("samples/test_samples.py", "cert-manager"), SHARED, False),
        (item("samples/test_samples.py", "cert-manager"), item("cluster_api/test_cluster_api.py", "cert-manager"), True),
    ],
)
def test_a_test_waits_for_another_that_has_what_it_needs_to_itself(one: Any, other: Any, does: bool):
    assert waits(one, other, 0.2 if does else 30) is does


@pytest.mark.parametrize("one", [DYING_CONDUCTOR, STOPPED_PROVIDER])
def test_what_a_test_needs_is_locked_in_the_order_of_names(one: Any, monkeypatch: pytest.MonkeyPatch):
    """Else two tests could wait for each other."""
    taken: list[str] = []
    monkeypatch.setattr(turns, "locked", lambda name, *_: nullcontext(taken.append(name)))
    with turns.turn(one):
        assert taken == sorted(taken) and {PROVIDER, "tacker"} <= {*taken}


def test_what_a_fixture_keeps_others_wait_for_between_two_tests():
    """They have nothing yet that the fixture's next test needs."""
    clusters, faults = item("openstack/test_clusters.py", *BROUGHT), item("openstack/test_faults.py", "tacker", *BROUGHT)
    with ThreadPoolExecutor() as pool, ExitStack() as fixture:
        with turns.turn(clusters):
            for name in BROUGHT:
                fixture.enter_context(turns.to_itself(name))
        running = pool.submit(run, faults)
        with turns.turn(clusters), pytest.raises(TimeoutError):
            running.result(0.2)
        fixture.close()
        running.result(10)


def test_those_for_which_others_wait_come_late():
    last, samples = item("core/test_secrets.py", "kubernetes", "tacker"), item("samples/test_samples.py")
    items = [CONTROL_PLANE, last, CONDUCTORS, KUBERNETES_ONLY, SHARED, samples]
    turns.arrange(items)
    assert items == [samples, SHARED, KUBERNETES_ONLY, CONDUCTORS, CONTROL_PLANE, last]


def test_a_test_shares_what_a_fixture_of_its_process_has_to_itself():
    def process() -> None:
        with ExitStack() as fixture:
            with turns.turn(item("openstack/test_clusters.py", "openstack")):
                fixture.enter_context(turns.to_itself("openstack"))
            run(item("openstack/test_clusters.py"))

    with ThreadPoolExecutor() as pool:
        pool.submit(process).result(10)
