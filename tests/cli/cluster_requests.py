# SPDX-License-Identifier: Apache-2.0
"""Requests for clusters on servers, as `validate` judges them, and as the tutorials have them."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

from tests.cli.tool import Tool

PARAMETER = "k8s_cluster_installation_param"
_TUTORIALS = Path(__file__).parents[2] / "doc" / "source" / "tutorial"


def all_of_tutorial(name: str) -> list[Any]:
    """The requests in the tutorial of this name."""
    blocks = re.findall(r"code-block:: json\n\n((?:   .*\n|\n)+)", (_TUTORIALS / f"{name}.rst").read_text())
    return [json.loads(textwrap.dedent(one)) for one in blocks]


def of_tutorial(name: str) -> Any:
    """The parameter of the first of them."""
    return all_of_tutorial(name)[0]["additionalParams"][PARAMETER]


def judged(tool: Tool, folder: Path, given: Any = None, code: int = 0) -> tuple[list[str], list[str]]:
    """The errors and the warnings of the package, with a request that has this parameter if it is given."""
    options = []
    if given is not None:
        file = folder.parent / "request.json"
        file.write_text(json.dumps({"additionalParams": {PARAMETER: given}}))
        options = ["--request", str(file)]
    said = tool.json("validate", str(folder), *options, code=code)
    return said["problems"], said["warnings"]
