# SPDX-License-Identifier: Apache-2.0
"""Every reader of times takes them as the API server may write them."""

from __future__ import annotations

import datetime

import pytest

from k8s_cr_driver.cli.output import age
from k8s_cr_driver.kube.clock import ServerClock
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import is_older_than
from k8s_cr_driver.objects.times import moment
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.resources.health.model import Health
from k8s_cr_driver.resources.health.silence import is_unwritten, unless_silent

UTC = datetime.timezone.utc
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stamp", "microseconds"),
    [
        ("2026-01-01T12:00:00Z", 0),
        ("2026-01-01T12:00:00.5Z", 500_000),
        ("2026-01-01T12:00:00.25Z", 250_000),
        ("2026-01-01T12:00:00.000001Z", 1),
        ("2026-01-01T12:00:00.123456789Z", 123_456),
        ("2026-01-01t12:00:00z", 0),
        ("2026-01-01 12:00:00+00:00", 0),
        ("2026-01-01T14:30:00.5+02:30", 500_000),
        ("2025-12-31T23:00:00-13:00", 0),
        ("2026-01-01T12:00:00", 0),
    ],
)
def test_time_of_rfc_3339(stamp: str, microseconds: int) -> None:
    found = moment(stamp)
    assert found == NOON + datetime.timedelta(microseconds=microseconds)
    assert found.utcoffset() == datetime.timedelta()


@pytest.mark.parametrize(
    "stamp",
    [
        None,
        12,
        "",
        "2026-01-01",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:01:00Z",
        "2026-01-01T12:00:00.Z",
        "2026-01-01T12:00:00+0200",
        "٢٠٢٦-01-01T12:00:00Z",
        "2026-01-01T12:00:00Z and more",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_what_is_no_time(stamp: object) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339|range|isoformat|month|hour|minute"):
        moment(stamp)


def written(ago: float) -> list[str]:
    """One time in the forms that a server, or somebody's backup, may have for it."""
    then = datetime.datetime.now(UTC) - datetime.timedelta(seconds=ago)
    east = then.astimezone(datetime.timezone(datetime.timedelta(hours=5, minutes=30)))
    plain = then.strftime("%Y-%m-%dT%H:%M:%S")
    return [f"{plain}Z", f"{plain}.5Z", f"{plain}.123456789Z", east.isoformat(timespec="microseconds"), plain]


@pytest.mark.parametrize("form", range(5))
@pytest.mark.parametrize("ago", [5, 300])
def test_all_readers_agree(ago: int, form: int) -> None:
    stamp = written(ago)[form]
    live: Object = {"metadata": {"creationTimestamp": stamp, "managedFields": [{"manager": "m", "time": stamp}]}}
    assert ServerClock().age(stamp) == pytest.approx(ago, abs=3)
    assert is_unwritten(live) == (ago > 30)
    assert age(stamp)[-1:] in "sm" and age(stamp) != "?"
    live["metadata"]["creationTimestamp"] = written(ago - 200)[0]
    assert is_older_than(live, "m")
    live["metadata"]["creationTimestamp"] = written(ago)[0]
    assert not is_older_than(live, "m")


@pytest.mark.parametrize("form", range(5))
def test_condition_after_the_deletion_says_why_it_lasts_in_any_form_of_its_time(form: int) -> None:
    blocked = {"type": "Deleted", "status": "False", "message": "a claim is left", "lastTransitionTime": written(90)[form]}
    live: Object = {
        "metadata": {"deletionTimestamp": written(100)[0], "creationTimestamp": written(300)[0], "finalizers": ["a/b"]},
        "status": {"conditions": [blocked]},
    }
    assert "a claim is left" in unless_silent(live, Health(State.WAITING)).message
    blocked["lastTransitionTime"] = written(110)[form]
    assert "a claim is left" not in unless_silent(live, Health(State.WAITING)).message
