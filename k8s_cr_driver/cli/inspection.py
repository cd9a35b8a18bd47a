# SPDX-License-Identifier: Apache-2.0
"""All that `validate`, `package` and `init` find in a package without a cluster, in one run."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli import (
    management_drivers,
    node_clusters,
    node_ports,
    package_input,
    package_scripts,
    references,
    scaling_policies,
    vdu_checks,
)
from k8s_cr_driver.cli.findings import ERROR, WARNING, Findings
from k8s_cr_driver.cli.package_request import Wish
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.package import (
    alternatives,
    builtin_rules,
    check,
    crd_rules,
    health_rules,
    helm_hooks,
    hot,
    leftovers,
    manifests,
    networks,
    parameters,
    rule_checks,
    schema,
    substitution,
    tosca,
    tosca_meta,
    vnfd,
    vnfd_rules,
)
from k8s_cr_driver.package.places import Places
from k8s_cr_driver.package.samples import Sampled
from k8s_cr_driver.scaffold.model import enumerated
from k8s_cr_driver.vnf import vdus

_OF_THE_VNFD = {"tosca-meta", "vnfd", "scaling", "management-driver", "node-cluster"}


def inspect(folder: Path, wish: Wish, findings: Findings) -> list[Object]:
    """The package's objects, as far as they can be read; all that is wrong is added to `findings`."""
    run = _Inspection(folder, wish, findings)
    objects = run.objects()
    findings.place(run.places, [*vnfd_files(folder), *tosca_meta.manifest_files(folder)])
    return objects


def vnfd_files(folder: Path) -> list[str]:
    definitions = sorted((folder / vnfd.DEFINITIONS).glob("*"))
    return [tosca_meta.TOSCA_META, *(f"{vnfd.DEFINITIONS}/{path.name}" for path in definitions)]


@dataclass
class _Set:
    """Objects that one operation is given."""

    objects: list[Object]
    files: Sequence[str]
    report: manifests.Report
    hooks: Sequence[Object] = ()
    """All objects, also those that are hooks of Helm and not applied."""
    unknown: set[GroupKind] = field(default_factory=set)
    """Kinds whose scope only a cluster knows."""


class _Inspection:
    def __init__(self, folder: Path, wish: Wish, findings: Findings) -> None:
        self.folder, self.wish, self.findings = folder, wish, findings
        self.namespace = wish.place(folder)
        self.places = Places(folder)
        self.sampled = Sampled()

    def objects(self) -> list[Object]:
        try:
            tosca_meta.check_links(self.folder)
            for code, text in check.of_folder(self.folder):
                self.findings.add(code, [text])
            contents = vnfd.definitions(self.folder)
            self.declared, self.rules_file = parameters.declared(contents), health_rules.file(contents)
            self.flavours = vnfd.flavours(self.folder)
        except InvalidPackage as error:
            self.findings.add("vnfd", [str(error)])
            return []
        self.places.flavours = {
            name: f"{vnfd.DEFINITIONS}/{file}" for file, content in contents.items() if (name := vnfd.flavour(content))
        }
        self.findings.add("vnfd", vnfd_rules.repeated_keys(self.folder))
        self.findings.add("vnfd", vnfd_rules.problems(contents))
        self._package()
        try:
            self.values = self._values()
        except InvalidRequest as error:
            self.findings.add("parameter", [str(error)])
            return []
        with contextlib.ExitStack() as beside:
            outcome = beside.enter_context(tosca.parsing(self.folder)) if self._may_be_parsed() else None
            found = [self._examined(one) for one in self._sets()]
            if outcome and self._may_be_parsed():
                self._tacker(outcome())
        return found[0].objects if found else []

    def _may_be_parsed(self) -> bool:
        """Whether nothing is found that Tacker's parser would say in worse words."""
        return not _OF_THE_VNFD & {one.code for one in self.findings.found.values() if one.severity == ERROR}

    def _package(self) -> None:
        """What is said of the package without its manifests."""
        folder, findings = self.folder, self.findings
        try:
            findings.scripts += package_scripts.of(folder)
            findings.add("management-driver", management_drivers.problems(folder))
            findings.add("node-cluster", node_clusters.problems(folder, self.wish.request))
            findings.add("node-cluster", node_ports.problems(folder, self.wish.request))
            findings.add("scaling", scaling_policies.problems(folder))
            findings.warn("scaling", scaling_policies.warnings(folder))
            findings.warn("management-driver", management_drivers.warnings(folder))
            findings.warn("node-cluster", node_clusters.warnings(folder))
        except InvalidPackage as error:
            findings.add("vnfd", [str(error)])
        if not self.wish.files:
            if unread := tosca_meta.other_files(folder):
                suffixes = ", ".join(f"*{suffix}" for suffix in tosca_meta.SUFFIXES)
                text = f"{enumerated(unread)}: not checked, for manifests are {suffixes}; name it with --file"
                findings.warn("unread", [text])
            findings.warn("unread", (f"{chart}: {leftovers.OF_CHART}" for chart in tosca_meta.charts(folder)))

    def _tacker(self, outcome: tosca.Outcome) -> None:
        if outcome.remote:
            text = f"Imports of {enumerated(outcome.remote)}: not loaded, so Tacker's parser was not asked"
            self.findings.warn("tacker", [text])
        else:
            self.findings.add("tacker", outcome.refusals)

    def _values(self) -> dict[str, Any]:
        """Of all parameters; samples stand for what must be given and is not."""
        values, missing = package_input.with_samples(self.declared, self.wish.given, self.wish.requested)
        self.sampled = Sampled(missing)
        if missing:
            text = (
                f"Parameters without a default: {enumerated(sorted(missing))}. Samples stand for them here; an instantiate "
                "needs their values, in request.json or by --param NAME=VALUE of k8s-cr run"
            )
            self.findings.warn("parameter", [text])
        return values

    def _sets(self) -> Iterator[_Set]:
        """The sets of files that an operation may be given."""
        every = tosca_meta.manifest_files(self.folder)
        if requested := [self.wish.files] if self.wish.files else alternatives.requested(self.folder):
            for files in requested:
                yield self._checked(self._read(files))
            named = {name for files in requested for name in files}
            named |= {name for files in requested for name in health_rules.unnamed(self.folder, files, self.rules_file)}
            for name in [] if self.wish.files else [name for name in every if name not in named]:
                self._checked(self._read([name]))
                text = f"{name}: no {alternatives.PATTERN} of the package names it in {alternatives.FILES}; add it there"
                self.findings.warn("unread", [text])
            return
        whole = self._read(every)
        if excluding := dict(self._excluding(whole)):
            self.findings.warn("alternatives", excluding.values())
            mapped = vdu_checks.Checks(self.folder, self.flavours, whole.objects, self.sampled)
            self.findings.add("vdu", mapped.without_object())
            for files in alternatives.sets(every, excluding):
                yield self._checked(self._read(files))
        else:
            yield self._checked(whole)

    def _excluding(self, whole: _Set) -> Iterator[tuple[tuple[str, str], str]]:
        """Pairs of files that cannot be given together, with a sentence for the author."""
        remedy = f"a request names one of them ({alternatives.FILES}); the choices of {alternatives.PATTERN} are checked"
        written: dict[ObjectKey, str] = {}
        places = [(key_of(obj), source) for obj, source in whole.report.sources]
        for key, source in [*places, *((key, again) for key, _, again in whole.report.repeated)]:
            one = written.setdefault(key._replace(namespace=key.namespace or self.namespace), _file(source))
            if one != _file(source):
                yield (one, _file(source)), f"{key} is written in {one} and in {_file(source)}; {remedy}, or remove one"
        files = {key: _file(source) for key, source in places}
        for flavour, template in self.flavours.items():
            with contextlib.suppress(InvalidPackage):
                nodes = vdu_checks.of_manifests(self.folder, flavour, template)
                for vdu, several in vdus.candidates(vdu_checks.resources(whole.objects), nodes).items():
                    for one, other in itertools.combinations(sorted({files.get(obj.key, "") for obj in several}), 2):
                        why = f"Flavour {flavour}: VDU {vdu} is an object in {one} and another one in {other}"
                        yield (one, other), f"{why}; {remedy}, or annotate exactly one object with {vdus.VDU}: {vdu}"

    def _read(self, files: Sequence[str]) -> _Set:
        """The objects of these files, without those that cannot be read."""
        report = manifests.Report()
        fill = self.sampled.recording(substitution.filler(self.declared, self.values))
        objects: list[Object] = []
        try:
            if names := files or health_rules.unnamed(self.folder, [], self.rules_file):
                warn, rules = report.warnings.append, self.rules_file
                objects = manifests.load(self.folder, names, fill=fill, rules_file=rules, report=report, warn=warn)
        except (InvalidPackage, InvalidRequest) as error:
            report.problems.append(str(error))
        return _Set(objects if self.wish.all_hooks else helm_hooks.applied(objects), files, report, hooks=objects)

    def _checked(self, one: _Set) -> _Set:
        """The set with the namespaces of its objects, as far as no cluster is needed."""
        for text in one.report.problems:
            code, better = leftovers.instead(self.folder, text)
            self.findings.add(code, [better])
        self.findings.warn("health-rule", one.report.warnings)
        self.findings.warn("health-rule", rule_checks.of_kinds(self.wish.rules, one.objects, crds_of(one.objects)))
        twice = (
            f"{key} is written twice: {first} and {again}; remove one of them" for key, first, again in one.report.repeated
        )
        self.findings.add("manifest", twice)
        self.places.sources |= {str(key_of(obj)): source for obj, source in one.report.sources}
        self.findings.warn("hook", helm_hooks.warnings(one.hooks, are_applied=self.wish.all_hooks))
        self._place(one)
        self.places.sources |= {str(key_of(obj)): source for obj, source in one.report.sources}
        return one

    def _place(self, one: _Set) -> None:
        refused = dict(package_input.not_served(one.objects))
        self.findings.add("kind", refused.values())
        one.objects = [obj for obj in one.objects if key_of(obj) not in refused]
        try:
            one.unknown = package_input.place(one.objects, self.namespace)
        except (InvalidPackage, InvalidRequest) as error:
            self.findings.add("kind" if "unknown kind" in str(error) else "manifest", [str(error)])

    def _examined(self, one: _Set) -> _Set:
        objects, findings = one.objects, self.findings
        if not objects and not one.report.problems and not (self.folder / hot.FOLDER).is_dir():
            suffixes = ", ".join(f"*{suffix}" for suffix in tosca_meta.SUFFIXES)
            findings.warn("manifest", [f"{tosca_meta.MANIFESTS}: no manifests ({suffixes}); a request must name other files"])
        try:
            dependencies.check(objects)
        except InvalidPackage as error:
            findings.add("order", [str(error)])
        findings.add("schema", schema.problems(objects, self.sampled))
        findings.add("schema", schema.builtin_problems(objects, self.sampled))
        findings.add("schema", builtin_rules.problems(objects))
        findings.add("crd", crd_rules.problems(objects))
        findings.warn("network", networks.problems(objects))
        findings.warn("leftover", leftovers.problems(objects))
        mapped = vdu_checks.Checks(self.folder, self.flavours, objects, self.sampled)
        partial = bool(one.report.problems) or tosca_meta.leaves_out(self.folder, one.files)
        for is_sure, text in mapped.problems(one.unknown, partial=partial):
            findings.add("vdu", [text], ERROR if is_sure else WARNING)
        findings.add("count", mapped.wrong_counts())
        findings.warn("count", mapped.useless_counts())
        findings.warn("parameter", _shell_defaults(self.folder, self.declared, one.files))
        findings.warn("kind", references.undefined(objects, one.unknown))
        findings.warn("reference", references.sentences(objects))
        findings.warn("node-cluster", node_ports.warnings(self.folder, objects))
        return one


def _file(source: str) -> str:
    return source.partition(", document ")[0]


def _shell_defaults(folder: Path, declared: Collection[str], files: Iterable[str]) -> Iterator[str]:
    """A sentence for each declared parameter that a file names as a shell names a variable with a default."""
    for file in files:
        try:
            content = (folder / file).read_text(errors="replace")
        except OSError:
            continue
        for name in sorted(set(declared) & set(substitution.SHELL_DEFAULT.findall(content))):
            yield (
                f"{file}: ${{{name}:-...}} stays as it stands, though {name} is a parameter: write ${{{name}:=...}} for its "
                f"value and a default, or $${{{name}:-...}} if a shell reads it"
            )
