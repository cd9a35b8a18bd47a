# SPDX-License-Identifier: Apache-2.0
"""A package, with its request.json, as the set of objects of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli import package_input, package_scripts, vdu_checks
from k8s_cr_driver.cli.output import echo
from k8s_cr_driver.cli.package_request import Wish
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects.fields import entries, field, mapping, text
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import check, reserved_marks, tosca_meta, vnfd
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.scaffold.model import enumerated
from k8s_cr_driver.vnf import counts, vdus
from k8s_cr_driver.vnf.additional_params import FILES, Options
from k8s_cr_driver.vnf.session import Session


def read(folder: Path, wish: Wish, timeout: float | None) -> Wanted:
    """
    The package with its request.json, before which the wish and the timeout in seconds come.

    Raises InvalidPackage and InvalidRequest. Names the scripts that Tacker would run.
    """
    request = package_input.request_of(folder)
    first = {"namespace": wish.namespace, FILES: list(wish.files), "wait-timeout": timeout, "helm-hooks": wish.all_hooks}
    given = {key: value for key, value in first.items() if value not in (None, [], False)}
    options = Options().updated({**mapping(request, "additionalParams"), **given})
    check.refuse_wrong(folder)
    wanted = package_input.load(
        folder, wish.given, options.files, requested=options.parameters, all_hooks=options.helm_hooks, warn=_warn
    )
    if not wanted:
        raise InvalidPackage(f"{tosca_meta.MANIFESTS}: no manifests, so there is nothing to run; name others with --file")
    if options.adopt_existing:
        reserved_marks.check_adoptable(wanted)
    if scripts := [script.path for script in package_scripts.of(folder) if script.operations]:
        echo(f"Not run, because only Tacker runs scripts: {enumerated(scripts)}", err=True)
    return Wanted(folder, wanted, options, request, product_of(folder))


def _warn(text: str) -> None:
    echo(f"warning: {redact(text)}", err=True)


@dataclass(frozen=True)
class Wanted:
    """What a package is to be on a cluster; `product` has its name and version."""

    folder: Path
    objects: list[Object]
    options: Options
    request: Mapping[str, Any]
    product: tuple[str, str]

    def resources(self, session: Session, *, is_change: bool) -> list[CustomResource]:
        """The objects in their places, with the counts of the level."""
        resources = session.place(self.objects, {} if is_change else None)
        flavours = vnfd.flavours(self.folder)
        flavour = text(self.request, "flavourId") or next(iter(flavours), "")
        if flavour not in flavours:
            raise InvalidRequest(f"request.json, flavourId: the VNFD has no flavour {flavour}; it has {', '.join(flavours)}")
        nodes = vdu_checks.of_manifests(self.folder, flavour, flavours[flavour])
        partial = tosca_meta.leaves_out(self.folder, self.options.files) if self.options.files else False
        assigned = vdus.assign(resources, nodes, partial=partial)
        level = text(self.request, "instantiationLevelId") or None
        assigned = counts.at_level(assigned, _Levels(flavours[flavour]), flavour, level)
        counts.check(assigned, {})
        counted_objects = {obj.key: obj for obj in vdus.whole_objects(assigned)}
        return [counted_objects.get(obj.key, obj) for obj in resources]


@dataclass(frozen=True)
class _Levels:
    """The policies of a flavour, as Tacker's class of a VNFD returns them."""

    template: Mapping[str, Any]

    def get_policy_values_by_type(self, flavour: str, kind: str) -> list[Mapping[str, Any]]:
        del flavour
        policies = (policy for entry in entries(self.template, "policies") for policy in entry.values())
        return [policy for policy in policies if field(policy, "type") == kind]

    def get_default_instantiation_level(self, flavour: str) -> Any:
        found = self.get_policy_values_by_type(flavour, "tosca.policies.nfv.InstantiationLevels")
        return field(found[0], "properties", "default_level") if found else None


def product_of(folder: Path) -> tuple[str, str]:
    """Name and version of the product that the VNFD describes, without spaces."""
    for content in vnfd.definitions(folder).values():
        for node in mapping(content, "topology_template", "node_templates").values():
            if found := text(node, "properties", "product_name"):
                version = str(field(node, "properties", "software_version") or "unknown")
                return "-".join(found.split()), "-".join(version.split()) or "unknown"
    return "unknown", "unknown"
