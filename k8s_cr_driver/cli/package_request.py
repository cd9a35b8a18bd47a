# SPDX-License-Identifier: Apache-2.0
"""What of a package is meant: by the options that commands have in common, and by a request."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.findings import Findings
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.fields import mapping, similar
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import vnfd
from k8s_cr_driver.package.rule_checks import Sourced
from k8s_cr_driver.vnf.additional_params import Options

_FILE = "A manifest of the package; with any, no other is taken."
_PARAM = "A parameter, in its type; the value of a secret one is SECRET/KEY."


@dataclass(frozen=True)
class Wish:
    """What of a package is meant: `given` are parameters as the command line has them."""

    namespace: str | None = None
    """Of objects that name none; None for that of the package's request.json."""
    given: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[str] = ()
    all_hooks: bool = False
    request: Path | None = None
    requested: Mapping[str, Any] = field(default_factory=dict)
    """Parameters in their types, as the request has them; those `given` come first."""
    rules: Sourced = field(default_factory=dict)
    """Readiness rules of the request."""

    def place(self, folder: Path) -> str:
        """The namespace of the package's objects that name none."""
        return self.namespace or package_input.requested(folder)

    def objects(self, folder: Path) -> list[Object]:
        """Those of the package. Raises InvalidPackage."""
        return package_input.load(folder, self.given, self.files, requested=self.requested, all_hooks=self.all_hooks)

    def in_package(self, folder: Path) -> Wish:
        """What the request.json of a package asks for, too; options come first. Raises InvalidRequest."""
        return self._or(Options().updated(mapping(package_input.request_of(folder), "additionalParams")))

    def _or(self, asked: Options) -> Wish:
        return replace(
            self,
            namespace=self.namespace or asked.namespace,
            files=self.files or asked.files,
            all_hooks=self.all_hooks or asked.helm_hooks,
            requested=asked.parameters,
        )


def with_wish(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --param, --file, --helm-hooks and --namespace; the command gets them as `wish`."""

    @click.option("--param", "given", multiple=True, callback=_pairs, metavar="NAME=VALUE", help=_PARAM)
    @click.option("--file", "files", multiple=True, metavar="FILE", help=_FILE)
    @click.option("--helm-hooks", "all_hooks", is_flag=True, help="Apply all of Helm's hooks, as the parameter helm-hooks.")
    @package_input.with_namespace
    @functools.wraps(command)
    def wrapped(
        *args: Any, namespace: str | None, given: Mapping[str, str], files: Sequence[str], all_hooks: bool, **options: Any
    ) -> Any:
        return command(*args, wish=Wish(namespace, given, files, all_hooks), **options)

    return wrapped


def _pairs(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    pairs = dict(value.partition("=")[::2] for value in values)
    if bad := [value for value in values if not value.partition("=")[0] or "=" not in value]:
        raise click.BadParameter(f"{bad[0]!r} is not NAME=VALUE", context, parameter)
    if len(pairs) < len(values):
        raise click.BadParameter("a NAME is given twice", context, parameter)
    return pairs


def with_request(folder: Path, wish: Wish, findings: Findings) -> Wish:
    """What the request of the wish asks for, too; options come first."""
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
    rules = rule_files.read({rule_files.LIST: list(asked.health_rules)})
    return replace(
        wish._or(asked),
        rules={
            kind: (written, f"additionalParams health-rules: [{index}]") for index, (kind, written) in enumerate(rules.items())
        },
    )
