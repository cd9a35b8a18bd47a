# SPDX-License-Identifier: Apache-2.0
"""Whether a chart does more with a value than to put it into its manifests, beside what it renders at random."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.scaffold import parameters
from k8s_cr_driver.scaffold.model import Parameter
from k8s_cr_driver.scaffold.volatile import Random
from tests.instance import config_map, obj

_TAG = Parameter("TAG", "string", "1", "image.tag of the chart")
_random = itertools.count()


def _secret(name: str, **values: str) -> Object:
    return obj("v1", "Secret", name, stringData=values)


@pytest.mark.parametrize(
    ("chart", "refused"),
    [
        (lambda tag: [_secret("s", random=f"{next(_random)}", tag=tag)], ""),
        (lambda tag: [_secret(f"s-{tag}", random=f"{next(_random)}")], ""),
        (lambda _: [_secret(f"s-{next(_random)}"), _secret(f"s-{next(_random)}")], ""),
        (
            lambda tag: [_secret("s", random=f"{next(_random)}", length=f"{len(tag)}")],
            r"Secret s: stringData.length: the chart computes it",
        ),
        (
            lambda tag: [_secret("s", tag=tag), *([config_map("c")] if tag == "1" else [])],
            "ConfigMap default/c: the chart decides",
        ),
        (
            lambda tag: [_secret(f"s-{next(_random)}"), *([_secret("more")] if tag == "1" else [])],
            "Secret .*: the chart decides whether it is there",
        ),
    ],
)
def test_only_what_a_value_changes_is_blamed_on_its_parameter(chart: Callable[[str], list[Object]], refused: str) -> None:
    renderings = [({"TAG": tag}, chart(tag)) for tag in ("1", "2")]
    arguments = chart("${TAG}"), [_TAG], renderings, Random(chart("1"), chart("1"))
    if refused:
        with pytest.raises(InvalidPackage, match=refused):
            parameters.check_harmless(*arguments)
    else:
        parameters.check_harmless(*arguments)
