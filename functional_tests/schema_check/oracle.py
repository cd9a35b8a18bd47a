# SPDX-License-Identifier: Apache-2.0
"""What the API server would say of CustomResourceDefinitions and custom resources: its own packages, asked without a cluster.

The program is built from `builds/go/schema-oracle`; its main.go describes questions and answers.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from builds import programs

Object = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """`faults` are those of a create with strict field validation, `rules` of CEL, `apply` of a server-side apply."""

    faults: tuple[str, ...]
    rules: tuple[str, ...]
    apply: str


class Oracle:
    """A context manager."""

    def __enter__(self) -> Oracle:
        program = programs.build("schema-oracle") / "oracle"
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def refusal(self, definition: Object) -> list[str]:
        """Why the API server refuses a CustomResourceDefinition."""
        return self._asked(definition, [])["definition"] or []

    def verdicts(self, definition: Object, objects: Sequence[Object]) -> list[Verdict]:
        """Of objects of a definition that is not refused."""
        return [
            Verdict((*(one["unknown"] or ()), *(one["errors"] or ())), tuple(one["rules"] or ()), one["apply"])
            for one in self._asked(definition, objects)["objects"] or []
        ]

    def _asked(self, definition: Object, objects: Sequence[Object]) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"definition": definition, "objects": objects}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())
