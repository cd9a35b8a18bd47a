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


def change(folder: Path, policy: str, path: tuple[str, ...], value: Any) -> None:
    with changed_vnfd(folder) as content:
        [at] = (entry[policy] for entry in content["topology_template"]["policies"] if policy in entry)
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value


def test_policies_that_fit_together_have_no_problem(tool: Tool, folder: Path) -> None:
    assert tool.json("validate", str(folder))["problems"] == []


@pytest.mark.parametrize(
    "policy, path, value, problems",
    [
        (
            "web_deltas",
            ("properties", "aspect"),
            "webs",
            [
                "policy web_deltas: the aspect 'webs' is not in the policy ScalingAspects; did you mean web?",
                "scaling aspect web: no policy VduScalingAspectDeltas has this aspect, so Tacker would refuse to scale it",
            ],
        ),
        ("web_deltas", ("targets",), ["Wep"], ["policy web_deltas: the target Wep is no node of the VNFD; did you mean Web?"]),
        (
            "web_deltas",
            ("properties", "deltas"),
            {"two": {"number_of_instances": 2}},
            ["policy web_deltas: deltas has no number_of_instances of one, which step_deltas of the aspect web names"],
        ),
        (
            "aspects",
            ("properties", "aspects", "web", "step_deltas"),
            [],
            ["scaling aspect web: step_deltas is missing, the list with the name of its delta"],
        ),
        (
            "aspects",
            ("properties", "aspects", "web", "max_scale_level"),
            None,
            ["scaling aspect web: max_scale_level: must be an integer, or nobody can scale it"],
        ),
        (
            "levels",
            ("properties", "default_level"),
            "smal",
            ["policy levels: the default_level smal is none of its levels; did you mean small?"],
        ),
        (
            "levels",
            ("properties", "levels", "big", "scale_info"),
            {"wep": {"scale_level": 0}},
            ["policy levels: the aspect wep of big is not in the policy ScalingAspects; did you mean web?"],
        ),
        (
            "counts",
            ("properties", "levels"),
            {"small": {"number_of_instances": 1}, "bigg": {"number_of_instances": 3}},
            ["policy counts: the level bigg is not in the policy InstantiationLevels; did you mean big?"],
        ),
        ("counts", ("targets",), ["Wep"], ["policy counts: the target Wep is no node of the VNFD; did you mean Web?"]),
        ("counts", ("targets",), "Web", ["policy counts: targets: must be a list of ids of VDUs"]),
        (
            "counts",
            ("properties", "levels"),
            {"small": {"number_of_instances": 1}, "big": {"number_of_instances": 3}, 1: {"number_of_instances": 2}},
            ["policy counts: the level 1 is an integer, which no request can name; write it in quotes"],
        ),
    ],
)
def test_a_slip_is_reported_with_the_policy_and_the_name(
    tool: Tool, folder: Path, policy: str, path: tuple[str, ...], value: Any, problems: list[str]
) -> None:
    change(folder, policy, path, value)
    found = tool.json("validate", str(folder), code=1)["problems"]
    assert sorted(found) == sorted(f"Flavour simple: {problem}" for problem in problems)


@pytest.mark.parametrize("value", [{"a": 1}, [["a"]], 3, None])
@pytest.mark.parametrize(
    "policy, path",
    [("web_deltas", ("properties", "aspect")), ("web_deltas", ("targets",)), ("aspects", ("properties", "aspects", "web"))],
)
def test_values_of_another_type_are_no_traceback(
    tool: Tool, folder: Path, policy: str, path: tuple[str, ...], value: object
) -> None:
    change(folder, policy, path, value)
    tool.json("validate", str(folder), code=0 if path == ("targets",) and value is None else 1)


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
        template = content["topology_template"]
        least, most = profile
        template["node_templates"]["Web"]["properties"]["vdu_profile"] = {
            "min_number_of_instances": least,
            "max_number_of_instances": most,
        }
        if initial is not None:
            properties = {"initial_delta": {"number_of_instances": initial}}
            policy = {"type": "tosca.policies.nfv.VduInitialDelta", "properties": properties, "targets": ["Web"]}
            template["policies"].append({"initial": policy})
    change(
        folder,
        "levels",
        ("properties", "levels"),
        {
            level: {"description": level, "scale_info": {"web": {"scale_level": number}}}
            for level, number in scale_levels.items()
        },
    )
    found = tool.json("validate", str(folder))["warnings"]
    assert sorted(found) == sorted(f"Flavour simple: {problem}" for problem in problems)
