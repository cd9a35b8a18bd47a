# SPDX-License-Identifier: Apache-2.0
"""What `init` makes a package of, by where it comes from."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver import redaction
from k8s_cr_driver.cli import chart, rendering
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package.documents import DocumentError, documents
from k8s_cr_driver.scaffold import hooks, parameters, reading, volatile
from k8s_cr_driver.scaffold.model import Choice, ManifestFile, Parameter, Product, enumerated


@dataclass(frozen=True)
class Wish:
    """What the options of the command want; `given` are pairs of a parameter and the path of a chart's value, "" for none."""

    source: str
    namespace: str
    release: str
    given: Sequence[tuple[str, str]] = ()
    values: Sequence[str] = ()
    sets: Sequence[str] = ()
    version: str | None = None
    kube_version: str | None = None
    api_versions: Sequence[str] = ()

    def as_options(self) -> dict[str, Any]:
        """What a later run takes from this one: not the source, nor its version."""
        values = [str(Path(one).resolve()) if Path(one).exists() else one for one in self.values]
        same = {"namespace": self.namespace, "sets": list(self.sets), "kube_version": self.kube_version}
        return {**same, "given": list(self.given), "values": values, "api_versions": list(self.api_versions)}

    def chart_options(self) -> list[str]:
        pairs = [("--values", one) for one in self.values] + [("--set", one) for one in self.sets]
        pairs += [("--api-versions", one) for one in self.api_versions]
        pairs += [("--kube-version", self.kube_version)] if self.kube_version else []
        return [word for pair in pairs for word in pair]


@dataclass(frozen=True)
class Gathered:
    files: Sequence[ManifestFile]
    product: Product
    parameters: Sequence[Parameter] = ()
    choices: Sequence[Choice] = ()


def gather(wish: Wish) -> Gathered:
    """The manifests of the source. Raises UsageError for one that is not there, InvalidPackage for what is wrong in it."""
    if chart.is_chart(wish.source):
        with chart.opened(wish.source, wish.version) as path:
            return _of_chart(chart.Chart(path, wish.release, wish.namespace, wish.chart_options()), wish)
    if wish.chart_options() or wish.version:
        raise click.UsageError(f"--from {wish.source}: is no chart, and only charts have values and versions")
    if name := next((name for name, path in wish.given if path), ""):
        raise click.UsageError(f"--param {name}=...: only charts have values; write --param {name} for ${{{name}}}")
    files, choices = _plain(wish)
    if not any(file.objects for file in files):
        raise InvalidPackage(f"--from {wish.source}: has no Kubernetes objects")
    wanted = [name for name, _ in wish.given]
    kept = []
    for file in files:
        objects, left_out = parameters.without_credentials(file.objects, wanted)
        choices += left_out
        if objects or not left_out:
            kept.append(reading.rewritten(file, objects))
    declared, of_references = parameters.found_in([obj for file in kept for obj in file.objects], wanted)
    return Gathered(_escaped(kept, declared), Product(wish.release), declared, [*choices, *of_references])


def _plain(wish: Wish) -> tuple[list[ManifestFile], list[Choice]]:
    path, target = Path(wish.source), f"{wish.release}.yaml"
    if wish.source == "-":
        return rendering.standard_input(target), []
    if not path.exists():
        raise click.UsageError(f"--from {wish.source}: there is no such file or folder, and it is no name of a chart")
    if rendering.is_kustomization(path):
        return [*rendering.kustomized(path, target), *rendering.rules_of(path)], []
    if path.name in rendering.KUSTOMIZATIONS:
        return [*rendering.kustomized(path.parent, target), *rendering.rules_of(path.parent)], []
    try:
        return rendering.files(path)
    except InvalidPackage as error:
        if charts := rendering.charts_in(path) if path.is_dir() else []:
            text = f"--from {path}: is no chart, but has some; name one: {enumerated([str(one) for one in charts])}"
            raise InvalidPackage(f"{text} ({error})") from None
        raise


def _of_chart(one: chart.Chart, wish: Wish) -> Gathered:
    name = f"{wish.release}.yaml"
    first, second = one.rendered(name), one.rendered(name)
    if not first:
        raise InvalidPackage(f"--from {wish.source}: the chart renders no objects with these values; give others with --set")
    random = volatile.Random(_installed(first), _installed(second))
    own, given = one.values(), _values({}, wish.values, wish.sets)
    choices = [*parameters.misspelt(given, own), *random.choices(), *volatile.of_templates(one.templates())]
    product = one.product(wish.release)
    if not wish.given:
        return Gathered([*first, *one.rules()], product, (), choices)
    values = _values(own, wish.values, wish.sets)
    declared = [parameters.of_value(name, path, values) for name, path in wish.given if path]
    if bare := next((name for name, path in wish.given if not path), ""):
        raise click.UsageError(f"--param {bare}: of a chart name the value, too: --param {bare}=PATH")
    try:
        files = _with_references(one, wish, declared, name, random)
    except InvalidPackage:
        for of in declared if len(declared) > 1 else ():  # which of them it is
            _with_references(one, wish, [of], name, random)
        raise
    choices += [Choice(of.description, f"parameter {of.name}", f"--param; type {of.type}, as in the values") for of in declared]
    return Gathered([*files, *one.rules()], product, declared, choices)


def _with_references(
    one: chart.Chart, wish: Wish, declared: Sequence[Parameter], name: str, random: volatile.Random
) -> list[ManifestFile]:
    """The manifests with references in place of values, once it is certain that the chart does no more with these."""
    paths = dict(wish.given)
    options = [word for of in declared for word in parameters.as_set(paths[of.name], f"${{{of.name}}}")]
    schema: Sequence[str] = ()
    try:
        rendered = one.rendered(name, *options)
    except InvalidPackage as error:
        schema = (chart.WITHOUT_SCHEMA,)  # that refuses a reference, whatever the templates make of it
        try:
            rendered = one.rendered(name, *options, *schema)
        except InvalidPackage:
            about = f"{parameters.blamed(declared)}: the chart does not take a text there; give the value with --set:"
            raise InvalidPackage(redaction.lines([about, str(error)])) from None
    files = _escaped(rendered, declared)
    renderings = []
    for values in ({of.name: of.default for of in declared}, {of.name: parameters.other(of) for of in declared}):
        given = [word for of in declared for word in parameters.as_set(paths[of.name], values[of.name])]
        renderings.append((values, _installed(one.rendered(name, *given, *schema))))
    parameters.check_harmless(_installed(files), declared, renderings, random)
    return files


def _installed(files: Sequence[ManifestFile]) -> list[Object]:
    """What of them becomes objects of the package."""
    return hooks.installed([obj for file in files for obj in file.objects])


def _escaped(files: Sequence[ManifestFile], declared: Sequence[Parameter]) -> list[ManifestFile]:
    """Files of a package with these parameters; without any, `${` has no meaning in it."""
    if not (names := [one.name for one in declared]):
        return [*files]
    return [reading.rewritten(file, [parameters.escaped(obj, names) for obj in file.objects]) for file in files]


def _values(own: Mapping[str, Any], files: Sequence[str], sets: Sequence[str]) -> dict[str, Any]:
    """The values of a chart with those of files and of --set; of the latter those that name a path of keys."""
    found = copy.deepcopy(dict(own))
    for file in files:
        try:
            parts = [value for _, value in documents(Path(file).read_text())]
        except (OSError, UnicodeDecodeError, DocumentError):
            continue  # helm reads URLs, too, and has read it
        for part in parts:
            _merge(found, part if isinstance(part, dict) else {})
    for one in (pair for text in sets for pair in re.split(r"(?<!\\),", text)):
        path, _, value = one.partition("=")
        nested: Any = _typed(value)
        for key in reversed(path.split(".")):
            nested = {key: nested}
        _merge(found, nested)
    return found


def _typed(text: str) -> Any:
    """As helm takes it: an integer, a boolean, null, else text."""
    return json.loads(text) if re.fullmatch(r"true|false|null|0|-?[1-9][0-9]{0,17}", text) else text.replace("\\,", ",")


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)
