# SPDX-License-Identifier: Apache-2.0
"""
Which files of manifests go together in one operation.

A package may have variants of which a request names one: then all files together are no set of objects. The requests in the
package name the sets; without any, files that exclude each other are put into different ones, so that each file is in a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from k8s_cr_driver.objects.fields import text, texts

FILES = "lcm-kubernetes-def-files"
PATTERN = "request*.json"
_REQUESTS = 100
_LARGEST = 1024 * 1024


def requests(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The requests for an instantiate that the package has, by the names of their files; others are left out."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.glob(PATTERN))[:_REQUESTS]:
        if path.is_file():  # a named pipe has no end
            try:
                with path.open(encoding="utf-8") as file:
                    content = json.loads(file.read(_LARGEST))
            except (OSError, ValueError, RecursionError):
                continue
            if isinstance(content, dict) and text(content, "flavourId"):
                found[path.name] = content
    return found


def requested(folder: Path) -> list[list[str]]:
    """The files of each request, each set once."""
    sets = (texts(request, "additionalParams", FILES) for request in requests(folder).values())
    return [list(files) for files in dict.fromkeys(tuple(files) for files in sets if files)]


def sets(files: Sequence[str], excluding: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Sets in which no two files exclude each other; what excludes nothing is in all of them."""
    excluded: dict[str, set[str]] = {}
    for one, other in excluding:
        excluded.setdefault(one, set()).add(other)
        excluded.setdefault(other, set()).add(one)
    found: list[list[str]] = []
    for file in files:
        if file in excluded:
            fitting = next((chosen for chosen in found if excluded[file].isdisjoint(chosen)), None)
            if fitting is None:
                found.append(fitting := [])
            fitting.append(file)
    return [[file for file in files if file in chosen or file not in excluded] for chosen in found] or [list(files)]
