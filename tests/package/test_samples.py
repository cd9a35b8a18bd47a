# SPDX-License-Identifier: Apache-2.0
"""Samples in the place of parameters without a value."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from k8s_cr_driver.package import substitution
from k8s_cr_driver.package.parameters import Declaration
from k8s_cr_driver.package.samples import Sampled


@pytest.mark.parametrize(
    ("data", "filled"),
    [
        ({"a": "${A}", "b": "YQ=="}, {"a": base64.b64encode(b"sample").decode(), "b": "YQ=="}),
        ({"a": "${B}"}, {"a": "Yg=="}),
        ({"a": ["${A}"]}, {"a": ["sample"]}),
        ("${A}", "sample"),
    ],
)
def test_the_data_of_a_secret_are_base64(data: Any, filled: Any) -> None:
    declared = {name: Declaration(name) for name in "AB"}
    fill = Sampled(["A"]).recording(substitution.filler(declared, {"A": "sample", "B": "Yg=="}))
    assert fill({"kind": "Secret", "data": data})["data"] == filled
