# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the management drivers of a package, and with their settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli import package_scripts
from k8s_cr_driver.credentials import operations, settings
from k8s_cr_driver.objects import yaml_nodes
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.package import scripts, vnfd

_SCRIPT = f"Scripts/{scripts.CREDENTIAL_SENDER}.py"
_SETTINGS = f"Scripts/{scripts.CREDENTIAL_SENDER}.yaml"


def problems(folder: Path) -> list[str]:
    """A sentence for each mistake."""
    senders = _senders(folder)
    if not senders and (folder / _SETTINGS).is_file():
        remedy = f"the VNF must name {_SCRIPT} in its artifacts and interfaces; else remove the file"
        return [f"{_SETTINGS}: has no effect: {remedy}"]
    found = [f"{path}: {what}" for path, what in package_scripts.unusable(folder)]
    found += [problem for name, named in senders.items() for problem in _sender_problems(folder, f"Flavour {name}", named)]
    return list(dict.fromkeys(found))


def warnings(folder: Path) -> list[str]:
    """Scripts that are not what their names say, and operations that a package leaves out: its receiver then misses them."""
    return package_scripts.impostors(folder) + [
        f"Flavour {name}: {operation} does not name the credential sender, so it is not reported to the receiver"
        for name, named in _senders(folder).items()
        for operation in operations.HANDLED
        if operation not in named
    ]


def _senders(folder: Path) -> dict[str, dict[str, str]]:
    """Flavour -> the operations that name the credential sender and the path of its script; of those flavours that have it."""
    return {
        name: named
        for name, template in vnfd.flavours(folder).items()
        if (named := scripts.of_driver(template, scripts.CREDENTIAL_SENDER))
    }


def _sender_problems(folder: Path, flavour: str, named: Mapping[str, str]) -> Iterator[str]:
    for operation in sorted(named.keys() - set(operations.HANDLED)):
        yield f"{flavour}: {operation} names the credential sender, which has nothing to do there; remove it"
    for path in sorted(set(named.values())):
        name = str(Path(path).with_suffix(".yaml"))
        if path != _SCRIPT and (folder / _SETTINGS).is_file():
            yield f"{flavour}: the artifact of the credential sender is {path}; write file: ../{_SCRIPT}, seen from Definitions"
            continue
        if name.startswith("..") or not (folder / name).is_file():
            yield f"{name}: is missing; the settings of the credential sender must be there"
            continue
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
        wrong = settings.problems(text, name)
        yield from wrong
        if not wrong and "terminate_end" in named:
            yield from _unreadable(name, yaml_nodes.loaded(text))


def _unreadable(name: str, content: Mapping[str, Any]) -> Iterator[str]:
    for key in settings.SECRETS:
        if field(content, key, "secret"):
            yield (
                f"{name}: {key} is in a Secret of the management cluster, which terminate_end cannot read, because Tacker "
                "has removed the VIM from the instance; name a receiver of the operator's, or leave terminate_end out"
            )
