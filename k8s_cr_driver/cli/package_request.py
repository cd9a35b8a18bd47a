# SPDX-License-Identifier: Apache-2.0
"""What of a package is to be checked: by the command line, and by a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.findings import Findings
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.fields import mapping, similar
from k8s_cr_driver.package import vnfd
from k8s_cr_driver.package.rule_checks import Sourced
from k8s_cr_driver.vnf.additional_params import Options


@dataclass(frozen=True)
class Wish:
    """What is to be checked: `given` are parameters as the command line has them."""

    namespace: str
    given: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[str] = ()
    all_hooks: bool = False
    request: Path | None = None
    requested: Mapping[str, Any] = field(default_factory=dict)
    """Parameters in their types, as the request has them; those `given` come first."""
    rules: Sourced = field(default_factory=dict)
    """Readiness rules of the request."""


def with_request(folder: Path, wish: Wish, findings: Findings, *, is_placed: bool) -> Wish:
    """What the request of the wish asks for, too; `is_placed`: the namespace is that of the command line."""
    if wish.request is None:
        return wish
    try:
        body = package_input.body(wish.request)
        asked = Options().updated(mapping(body, "additionalParams"))
        flavour, known = str(body.get("flavourId", "")), list(vnfd.flavours(folder))
    except InvalidRequest as error:
        findings.add("request", str(error).splitlines())
        return wish
    if "flavourId" in body and flavour not in known:
        near = similar(flavour, known)
        hint = f"did you mean {near}?" if near else f"the VNFD has {', '.join(known) or 'none'}"
        findings.add("request", [f"flavourId: {flavour!r} is no flavour of the package; {hint}"])
    return replace(
        wish,
        namespace=wish.namespace if is_placed else asked.namespace,
        files=wish.files or asked.files,
        all_hooks=wish.all_hooks or asked.helm_hooks,
        requested=asked.parameters,
        rules=_rules(asked),
    )


def _rules(asked: Options) -> Sourced:
    found = rule_files.read({rule_files.LIST: list(asked.health_rules)})
    entries = enumerate(found.items())
    return {kind: (written, f"additionalParams health-rules: [{index}]") for index, (kind, written) in entries}
