# SPDX-License-Identifier: Apache-2.0
"""Slips in the scaling policies of a VNFD are reported before a running instance is scaled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.packages import changed_vnfd, write_package
from tests.cli.tool import Tool
from tests.instance import config_map, deployment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    levels = {"small": 1, "big": 3}
    return write_package(tmp_path / "package", [deployment()], vdus={"Web": "web"}, aspects=["web"], levels=levels)


def change(folder: Path, policy: str, path: str, value: Any) -> None:
    """Sets what is at a path of names with dots between them."""
    with changed_vnfd(folder) as content:
        [at] = (entry[policy] for entry in content["topology_template"]["policies"] if policy in entry)
        *steps, last = path.split(".")
        for step in steps:
            at = at[step]
        at[last] = value


def number(count: int) -> dict[str, int]:
    return {"number_of_instances": count}


def test_policies_that_fit_together_have_no_problem(tool: Tool, folder: Path) -> None:
    assert tool.judged(folder)[0] == []


NO_ASPECT = "scaling aspect web: no policy VduScalingAspectDeltas has this aspect, so Tacker would refuse to scale it"
ASPECT = "properties.aspects.web"
LEVELS = "properties.levels"
NOT_IN_ASPECTS = " is not in the policy ScalingAspects; did you mean web?"
WEP_OF_BIG = f"the aspect wep of big{NOT_IN_ASPECTS}"
NOT_IN_LEVELS = " is not in the policy InstantiationLevels; did you mean big?"
NO_TEXT = "is an integer, which no request can name; write it in quotes"
MISSING = "scaling aspect web: step_deltas is missing, the list with the name of its delta"
NO_INTEGER = "scaling aspect web: max_scale_level: must be an integer, or nobody can scale it"
NO_LEVEL = "policy levels: the default_level smal is none of its levels; did you mean small?"
WEP = "the target Wep is no node of the VNFD; did you mean Web?"
NO_NUMBER = "deltas has no number_of_instances of one, which step_deltas of the aspect web names"


@pytest.mark.parametrize(
    "policy, path, value, problems",
    [
        ("web_deltas", "properties.aspect", "webs", [f"policy web_deltas: the aspect 'webs'{NOT_IN_ASPECTS}", NO_ASPECT]),
        ("web_deltas", "targets", ["Wep"], [f"policy web_deltas: {WEP}"]),
        ("web_deltas", "properties.deltas", {"two": number(2)}, [f"policy web_deltas: {NO_NUMBER}"]),
        ("aspects", f"{ASPECT}.step_deltas", [], [MISSING]),
        ("aspects", f"{ASPECT}.max_scale_level", None, [NO_INTEGER]),
        ("levels", "properties.default_level", "smal", [NO_LEVEL]),
        ("levels", f"{LEVELS}.big.scale_info", {"wep": {"scale_level": 0}}, [f"policy levels: {WEP_OF_BIG}"]),
        ("counts", LEVELS, {"small": number(1), "bigg": number(3)}, [f"policy counts: the level bigg{NOT_IN_LEVELS}"]),
        ("counts", "targets", ["Wep"], [f"policy counts: {WEP}"]),
        ("counts", "targets", "Web", ["policy counts: targets: must be a list of ids of VDUs"]),
        ("counts", LEVELS, {"small": number(1), "big": number(3), 1: number(2)}, [f"policy counts: the level 1 {NO_TEXT}"]),
    ],
)
def test_a_slip_is_reported_with_the_policy_and_the_name(
    tool: Tool, folder: Path, policy: str, path: str, value: Any, problems: list[str]
) -> None:
    change(folder, policy, path, value)
    assert sorted(tool.judged(folder, code=1)[0]) == sorted(f"Flavour simple: {problem}" for problem in problems)


@pytest.mark.parametrize("value", [{"a": 1}, [["a"]], 3, None])
@pytest.mark.parametrize(
    "policy, path",
    [("web_deltas", "properties.aspect"), ("web_deltas", "targets"), ("aspects", ASPECT)],
)
def test_values_of_another_type_are_no_traceback(tool: Tool, folder: Path, policy: str, path: str, value: object) -> None:
    change(folder, policy, path, value)
    tool.judged(folder, code=0 if path == "targets" and value is None else 1)


def test_a_vdu_without_a_count_in_a_scaling_aspect_is_a_warning(tool: Tool, tmp_path: Path) -> None:
    web = config_map("web")
    web["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Web"}
    folder = write_package(tmp_path, [web], vdus={"Web": "web"}, aspects=["web"])
    warnings = tool.json("validate", str(folder))["warnings"]
    assert any("VDU Web is ConfigMap default/web, whose kind has no count" in warning for warning in warnings)


@pytest.mark.parametrize(
    "initial, scale_levels, profile, problems",
    [
        (1, {"small": 0, "big": 2}, (0, 9), []),
        (None, {"small": 0, "big": 0}, (0, 9), []),
        (
            1,
            {"small": 0, "big": 1},
            (0, 9),
            [
                "VDU Web: has 3 instances at level big, and 2 by its initial_delta and its deltas at scale_level 1 of the "
                "aspect web; change one of them"
            ],
        ),
        (
            1,
            {"small": 0, "big": 2},
            (0, 2),
            [
                "VDU Web: has 3 instances at level big, and its vdu_profile allows 0 to 2; change one of them",
                "VDU Web: has 3 instances at scale_level 2 of the aspect web, and its vdu_profile allows 0 to 2; change one of "
                "them",
            ],
        ),
        (
            0,
            {"small": 1, "big": 3},
            (1, 9),
            [
                "the instantiation level big has scale_level 3 of the aspect web, whose levels are 0 to 2 (max_scale_level); "
                "change one of them",
                "VDU Web: has 0 instances by its initial_delta, and its vdu_profile allows 1 to 9; change one of them",
            ],
        ),
    ],
)
def test_numbers_that_do_not_agree_are_warnings(
    tool: Tool,
    folder: Path,
    initial: int | None,
    scale_levels: dict[str, int],
    profile: tuple[int, int],
    problems: list[str],
) -> None:
    with changed_vnfd(folder) as content:
        template, (least, most) = content["topology_template"], profile
        limits = {"min_number_of_instances": least, "max_number_of_instances": most}
        template["node_templates"]["Web"]["properties"]["vdu_profile"] = limits
        if initial is not None:
            policy = {"type": "tosca.policies.nfv.VduInitialDelta", "properties": {"initial_delta": number(initial)}}
            template["policies"].append({"initial": {**policy, "targets": ["Web"]}})
    infos = {level: {"description": level, "scale_info": {"web": {"scale_level": at}}} for level, at in scale_levels.items()}
    change(folder, "levels", LEVELS, infos)
    assert sorted(tool.judged(folder)[1]) == sorted(f"Flavour simple: {problem}" for problem in problems)
