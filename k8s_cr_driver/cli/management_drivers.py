# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the management drivers of a package, and with their settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli import package_scripts
from k8s_cr_driver.credentials import operations, settings
from k8s_cr_driver.objects import yaml_nodes
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.package import scripts, vnfd

_SENDER = "the credential sender"
_SCRIPT = f"Scripts/{scripts.CREDENTIAL_SENDER}.py"
_SETTINGS = f"Scripts/{scripts.CREDENTIAL_SENDER}.yaml"


def named(folder: Path, driver: str) -> dict[str, dict[str, str]]:
    """Flavour -> operation -> path of its script, of the flavours and operations that name a driver of this project."""
    flavours = vnfd.flavours(folder).items()
    return {name: found for name, template in flavours if (found := scripts.of_driver(template, driver))}


def misplaced(folder: Path, driver: str, known: Collection[str], called: str = "") -> Iterator[str]:
    """A sentence for each operation that names the driver, and is not `known` to it."""
    for flavour, found in named(folder, driver).items():
        for operation in sorted(found.keys() - set(known)):
            yield f"Flavour {flavour}: {operation} names {called or driver}, which has nothing to do there; remove it"


def left_out(folder: Path, driver: str, consequences: Mapping[str, str], called: str = "") -> Iterator[str]:
    """A sentence for each operation with a consequence that does not name the driver, while others do."""
    for flavour, found in named(folder, driver).items():
        for operation, consequence in consequences.items():
            if operation not in found:
                yield f"Flavour {flavour}: {operation} does not name {called or driver}, so {consequence}"


def problems(folder: Path) -> list[str]:
    """A sentence for each mistake."""
    senders = named(folder, scripts.CREDENTIAL_SENDER)
    if not senders and (folder / _SETTINGS).is_file():
        remedy = f"the VNF must name {_SCRIPT} in its artifacts and interfaces; else remove the file"
        return [f"{_SETTINGS}: has no effect: {remedy}"]
    found = [*package_scripts.unusable(folder)]
    found += misplaced(folder, scripts.CREDENTIAL_SENDER, operations.HANDLED, _SENDER)
    found += [problem for name, of in senders.items() for problem in _sender_problems(folder, f"Flavour {name}", of)]
    return list(dict.fromkeys(found))


def warnings(folder: Path) -> list[str]:
    """Scripts that are not what their names say, and operations that a package leaves out: its receiver then misses them."""
    unreported = dict.fromkeys(operations.HANDLED, "it is not reported to the receiver")
    return [*package_scripts.impostors(folder), *left_out(folder, scripts.CREDENTIAL_SENDER, unreported, _SENDER)]


def _sender_problems(folder: Path, flavour: str, named: Mapping[str, str]) -> Iterator[str]:
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
