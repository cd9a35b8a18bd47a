# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr validate`: checks a package without a cluster."""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli import (
    management_drivers,
    node_clusters,
    node_ports,
    package_input,
    package_scripts,
    package_update,
    references,
    scaling_policies,
)
from k8s_cr_driver.cli.output import counted, echo, enumerated, output_option, print_json
from k8s_cr_driver.cli.package_scripts import Script
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, kind_of
from k8s_cr_driver.package import check, helm_hooks, hot, parameters, schema, substitution, tosca, tosca_meta, vnfd
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import counts, vdus
from k8s_cr_driver.vnf.vdus import VduObjects


@dataclass
class Findings:
    """The errors of a package, and warnings for its author, a sentence each; and its scripts."""

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    scripts: list[Script] = field(default_factory=list)

    def show(self) -> None:
        for script in self.scripts:
            echo(f"note: {script}")
        for label, colour, found in (("error", "red", self.problems), ("warning", "yellow", self.warnings)):
            for text in found:
                click.echo(f"{click.style(label, fg=colour)}: {redact(text)}")


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr validate sample_packages/crontab
      k8s-cr validate cluster.csar --param CLUSTER_NAME=blue --param WORKERS=3
      k8s-cr validate new.csar --update-of old.csar
    """
)
@click.argument("path", metavar="PACKAGE", type=package_input.PackagePath())
@click.option(
    "--update-of",
    type=package_input.PackagePath(),
    metavar="OLD",
    help="Also what a change from OLD cannot take over.",
)
@package_input.with_parameters
@click.option(
    "--request",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also the body of an instantiate of servers that become a cluster.",
)
@package_input.with_namespace
@output_option()
def validate(
    path: Path,
    update_of: Path | None,
    files: Sequence[str],
    given: Mapping[str, str],
    all_hooks: bool,
    request: Path | None,
    namespace: str | None,
    output: str,
) -> None:
    """Check PACKAGE, a folder or a CSAR, without a cluster.

    TOSCA.meta and its hashes, the VNFD, manifests, parameters, custom resources against the package's own CRDs, VDUs, the
    order of creation. Warnings name what the cluster must have, notes the scripts that run on the conductor. Where
    parameters without a default are not given, samples are used.
    """
    findings = Findings()
    try:
        with package_input.opened(path) as folder:
            findings.problems += check.check(folder, files)
            if not findings.problems:
                namespace = namespace or package_input.requested(folder)
                values = given or package_input.sufficient(folder, {})
                objects = inspect(folder, values, files, namespace, findings, all_hooks=all_hooks, request=request)
                if path.is_file() and (unnamed := tosca_meta.unnamed(folder)):
                    findings.warnings.append(
                        f"{enumerated(unnamed)}: not named in {tosca_meta.TOSCA_META}, and Tacker unpacks only what that "
                        "names; make the CSAR with k8s-cr package"
                    )
                if update_of is not None:
                    with package_input.opened(update_of) as old:
                        compare(old, folder, objects, namespace, values, findings, all_hooks=all_hooks)
    except InvalidPackage as error:  # it cannot even be opened
        findings.problems.append(str(error))
    if output == "json":
        texts = {"problems": list(map(redact, findings.problems)), "warnings": list(map(redact, findings.warnings))}
        print_json({**texts, "scripts": [script.as_json() for script in findings.scripts]})
    else:
        findings.show()
        summary = ", ".join((counted(len(findings.problems), "error"), counted(len(findings.warnings), "warning")))
        echo(f"{path}: {summary}", err=True)
    if findings.problems:
        raise click.exceptions.Exit(1)


def inspect(
    folder: Path,
    given: Mapping[str, str] | None,
    files: Sequence[str],
    namespace: str,
    findings: Findings,
    *,
    all_hooks: bool = False,
    request: Path | None = None,
) -> list[Object]:
    """The package's objects; its scripts, and errors of the set as a whole, are added to `findings`."""
    findings.scripts += package_scripts.of(folder)
    try:
        objects = package_input.load(folder, given, files, all_hooks=True, warn=findings.warnings.append)
        findings.warnings += helm_hooks.warnings(objects, are_applied=all_hooks)
        objects = objects if all_hooks else helm_hooks.applied(objects)
        unknown = package_input.place(objects, namespace)
    except (InvalidPackage, InvalidRequest) as error:
        findings.problems.append(str(error))
        return []
    suffixes = ", ".join(f"*{suffix}" for suffix in tosca_meta.SUFFIXES)
    if not objects and not (folder / hot.FOLDER).is_dir():
        findings.warnings.append(f"{tosca_meta.MANIFESTS}: no manifests ({suffixes}); a request must name other files")
    if not files and (unread := tosca_meta.other_files(folder)):
        findings.warnings.append(f"{enumerated(unread)}: not checked, for manifests are {suffixes}; name it with --file")
    if given is None:
        declared = parameters.declared(vnfd.definitions(folder))
        needed = enumerated(sorted(name for name, one in declared.items() if one.must_be_given))
        findings.warnings.append(
            f"Parameters without a default: {needed}. `k8s-cr validate --param` also checks custom resources and counts"
        )
    for examine in [dependencies.check] if given is None else [dependencies.check, schema.check]:
        try:
            examine(objects)
        except InvalidPackage as error:
            findings.problems.append(str(error))
    findings.problems += management_drivers.problems(folder) + node_clusters.problems(folder, request)
    findings.problems += node_ports.problems(folder, request)
    findings.problems += scaling_policies.problems(folder)
    findings.warnings += management_drivers.warnings(folder) + node_clusters.warnings(folder)
    findings.warnings += node_ports.warnings(folder, objects)
    mapped = findings.warnings if unknown else findings.problems  # a CRD may say that an object has a count
    mapped += _vdu_problems(folder, objects, partial=bool(files) and tosca_meta.leaves_out(folder, files))
    if given is not None:
        findings.problems += _count_problems(folder, objects)
    if not findings.problems:  # those have better texts
        outcome = tosca.parse(folder)
        if outcome.remote:
            findings.warnings.append(f"Imports of {enumerated(outcome.remote)}: not loaded, so Tacker's parser was not asked")
        else:
            findings.problems += outcome.refusals
    findings.warnings += _uncounted(folder, objects)
    findings.warnings += _shell_defaults(folder, files or tosca_meta.manifest_files(folder))
    findings.warnings += _undefined(objects, unknown)
    findings.warnings += _unknown_references(objects)
    return objects


def _shell_defaults(folder: Path, files: Sequence[str]) -> Iterator[str]:
    """A sentence for each declared parameter that a file names as a shell names a variable with a default."""
    declared = parameters.declared(vnfd.definitions(folder))
    for file in files:
        named = substitution.SHELL_DEFAULT.findall((folder / file).read_text(errors="replace"))
        for name in sorted(declared.keys() & set(named)):
            yield (
                f"{file}: ${{{name}:-...}} stays as it stands, though {name} is a parameter: write ${{{name}:=...}} for its "
                f"value and a default, or $${{{name}:-...}} if a shell reads it"
            )


def _undefined(objects: Sequence[Object], kinds: Collection[GroupKind]) -> Iterator[str]:
    """A sentence for each kind that is neither built-in nor of the package."""
    for kind in sorted(kinds):
        names = [obj["metadata"]["name"] for obj in objects if kind_of(obj) == kind]
        yield (
            f"{kind} ({enumerated(names)}): the cluster must have its CustomResourceDefinition, or instantiate is refused; "
            "add it to the package if nobody else installs it"
        )


def _unknown_references(objects: Sequence[Object]) -> Iterator[str]:
    """A sentence for each object that is missing, however many refer to it."""
    referring: dict[ObjectKey, list[ObjectKey]] = defaultdict(list)
    for obj, wanted in references.unknown(objects):
        referring[wanted].append(obj)
    for wanted, found in referring.items():
        yield f"{enumerated(found)} {'refers' if len(found) == 1 else 'refer'} to {wanted}, which the package does not bring"


def _vdu_problems(folder: Path, objects: Sequence[Object], *, partial: bool) -> Iterator[str]:
    resources = _resources(objects)
    for flavour, template in vnfd.flavours(folder).items():
        try:
            vdus.assign(resources, _of_manifests(folder, flavour, template), partial=partial)
        except InvalidPackage as error:
            yield f"Flavour {flavour}: {error}"


def _count_problems(folder: Path, objects: Sequence[Object]) -> Iterator[str]:
    """A sentence for each flavour of which an instantiate with the counts of the manifests is refused."""
    for flavour, template, assigned in _assigned(folder, objects):
        try:
            by_manifest = {vdu: obj for vdu, obj in assigned.items() if vdu not in scaling_policies.counted(template)}
            counts.check(by_manifest, {}, most=sys.maxsize)
        except InvalidRequest as error:
            yield f"Flavour {flavour}: {error}"


def _uncounted(folder: Path, objects: Sequence[Object]) -> Iterator[str]:
    """A sentence for each VDU of a scaling aspect that is known to have no count."""
    for flavour, template, assigned in _assigned(folder, objects):
        scaled = scaling_policies.scaled(template)
        for vdu, obj in assigned.items():
            if vdu in scaled and not obj.replicas() and (obj.crd is not None or is_builtin(obj.key.group_kind)):
                yield (
                    f"Flavour {flavour}: VDU {vdu} is {obj}, whose kind has no count (no subresource scale), so it cannot be "
                    "scaled: take it out of the scaling aspects"
                )


def _assigned(folder: Path, objects: Sequence[Object]) -> Iterator[tuple[str, Mapping[str, Any], VduObjects]]:
    """Each flavour with its topology template and the objects of its VDUs; without those whose VDUs do not fit the objects."""
    resources = _resources(objects)
    for flavour, template in vnfd.flavours(folder).items():
        with contextlib.suppress(InvalidPackage):
            yield flavour, template, vdus.assign(resources, _of_manifests(folder, flavour, template), partial=True)


def _of_manifests(folder: Path, flavour: str, template: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The VDUs that are objects, and not servers of Heat."""
    servers = hot.servers(folder, flavour)
    return {name: node for name, node in vnfd.vdu_nodes(template).items() if name not in servers}


def _resources(objects: Sequence[Object]) -> list[CustomResource]:
    crds = crds_of(objects)
    return [resource_for(obj, crds.get(kind_of(obj))) for obj in objects]


def compare(
    old: Path,
    new: Path,
    objects: Sequence[Object],
    namespace: str,
    given: Mapping[str, str] | None,
    findings: Findings,
    *,
    all_hooks: bool,
) -> None:
    """Adds what a change from `old` cannot take over."""
    try:
        former = package_input.load(old, given, lenient=True, all_hooks=all_hooks)
        package_input.place(former, namespace)
        before, after = vnfd.flavours(old), vnfd.flavours(new)
    except (InvalidPackage, InvalidRequest) as error:
        findings.problems.append(f"The package to update from: {error}")
        return
    findings.problems += package_update.immutable_changes(former, objects)
    findings.warnings += package_update.narrower_crds(former, objects)
    findings.problems += package_update.shrinking_claims(former, objects)
    findings.problems += package_update.lost_versions(former, objects)
    findings.problems += [f"Flavour {name} vanishes; instances keep theirs" for name in sorted(before.keys() - after.keys())]
    for name in sorted(before.keys() & after.keys()):
        findings.warnings += package_update.lost_vdus(vnfd.vdu_nodes(before[name]), vnfd.vdu_nodes(after[name]))
        findings.warnings += package_update.new_aspects(*map(scaling_policies.aspects, (before[name], after[name])))
