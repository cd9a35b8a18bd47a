# SPDX-License-Identifier: Apache-2.0
"""The driver's keys of additionalParams: read, checked by type, kept, overridden."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.vnf.additional_params import FILES, Options

GIVEN = {
    FILES: ["Files/kubernetes/a.yaml"],
    "namespace": "blue",
    "parameters": {"SIZE": 3},
    "wait-timeout": "90",
    "force-conflicts": "true",
    "adopt-existing": True,
    "another-drivers-key": {"a": 1},
}


def test_all_keys_are_read_and_those_of_others_left_alone() -> None:
    assert Options().updated(GIVEN) == Options(
        files=("Files/kubernetes/a.yaml",),
        namespace="blue",
        parameters={"SIZE": 3},
        wait_timeout=90.0,
        force_conflicts=True,
        adopt_existing=True,
    )


def test_stored_options_are_the_same_without_those_of_one_request() -> None:
    options = Options().updated(GIVEN)
    kept = json.loads(json.dumps(options.as_params()))
    assert Options().updated(kept) == replace(options, force_conflicts=False, adopt_existing=False)


def test_a_later_request_overrides_only_what_it_gives() -> None:
    later = Options().updated(GIVEN).updated({"force-conflicts": False, "namespace": None})
    assert (later.force_conflicts, later.namespace, later.adopt_existing) == (False, "blue", True)


@pytest.mark.parametrize(
    "key, meant",
    [
        *(("wait_timeout", "wait-timeout"), ("Wait-Timeout", "wait-timeout"), ("wait-timout", "wait-timeout")),
        *(("force-conflict", "force-conflicts"), ("adopt_existing", "adopt-existing"), ("parameter", "parameters")),
        *(("lcm-kubernetes-def-file", FILES), ("delete_guests", "delete-guests"), ("Abandon", "abandon")),
    ],
)
def test_a_misspelt_key_is_refused_with_the_right_one(key: str, meant: str) -> None:
    with pytest.raises(InvalidRequest, match=f"additionalParams '?{key}'?: there is no such key; write {meant}$"):
        Options().updated({key: True})


@pytest.mark.parametrize("key", ["upgrade_type", "vdu_params", "credential-sender", "abandon", "recreate", "delete-guests"])
def test_keys_of_tacker_of_other_drivers_and_of_one_verb_are_left_alone(key: str) -> None:
    assert Options().updated({key: True}) == Options()


def test_a_week_is_not_too_long() -> None:
    assert Options().updated({"wait-timeout": 7 * 86400}).wait_timeout == 7 * 86400


@pytest.mark.parametrize(
    "key, value",
    [
        *((FILES, value) for value in ("a.yaml", [], [1], {}, [""], ["a.yaml", "b.yaml", "a.yaml"])),
        *(("namespace", value) for value in ("", 7, ["a"])),
        *(("parameters", value) for value in ("a=b", ["a"])),
        *(("wait-timeout", value) for value in ("soon", 0, -1, True, 8 * 86400, 10**400, float("nan"), [])),
        *(("no-activity-timeout", value) for value in ("soon", 0, 59, True, 8 * 86400, 10**400, float("nan"), [])),
        *((key, value) for key in ("force-conflicts", "adopt-existing") for value in ("yes", 1, [])),
    ],
)
def test_a_value_of_a_wrong_type_is_one_error_that_names_its_key(key: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"^additionalParams {key}: give "):
        Options().updated({key: value})


@pytest.mark.parametrize(
    "given",
    [{FILES: [f"{number}.yaml" for number in range(20_001)]}, {f"key-{number}": 1 for number in range(20_001)}],
)
def test_a_request_has_a_number_of_entries(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="has more than 20,000"):
        Options().updated(given)
