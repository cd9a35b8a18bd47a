# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr health`: whether objects are ready, which rules were asked, and what each said."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from k8s_cr_driver.cli.cluster import Cluster, Kubeconfig, on_cluster
from k8s_cr_driver.cli.descendants import crd_of
from k8s_cr_driver.cli.output import echo, print_json, print_table
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import field, text, type_name
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of
from k8s_cr_driver.objects.rule_fields import unknown_field_of_cel
from k8s_cr_driver.package import health_rules, normal_form, reserved_marks, rule_checks
from k8s_cr_driver.package.documents import DocumentError, documents
from k8s_cr_driver.package.tosca_meta import TOSCA_META
from k8s_cr_driver.package.vnfd import definitions
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources import explained
from k8s_cr_driver.resources.explained import Verdict
from k8s_cr_driver.resources.health import State, operator_rules
from k8s_cr_driver.resources.health.rules import Rules, of_texts
from k8s_cr_driver.resources.registry import resource_for

_COLUMNS = ("STATE", "OBJECT", "REASON", "DECIDED BY", "MESSAGE")
_LARGEST = 32 * 1024 * 1024


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr health widget.yaml --crd widgets.yaml --explain
      kubectl get widget w -o yaml | k8s-cr health - --rules rules/
      k8s-cr health Widget.example.com/w -n blue -o json
    """
)
@click.argument("subjects", metavar="FILE|-|KIND/NAME...", nargs=-1, required=True)
@on_cluster
@click.option("-n", "--namespace", default="default", help="Of KIND/NAME.", show_default=True)
@click.option("--crd", "crds", multiple=True, type=click.Path(exists=True, path_type=Path), help="A file of CRDs.")
@click.option("--rules", type=click.Path(exists=True, path_type=Path), help="A file or folder of rules, or a package.")
@click.option("--explain", is_flag=True, help="Show which rules were asked, what each said, and with * which decided.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="The form of the output.")
def health(
    kubeconfig: Kubeconfig,
    subjects: Sequence[str],
    namespace: str,
    crds: Sequence[Path],
    rules: Path | None,
    explain: bool,
    output: str,
) -> None:
    """Say whether objects are ready, and why.

    FILE: each object in a file of YAML or JSON, with its status; - is the standard input. KIND/NAME: an object of the
    cluster. Rules for kinds and CRDs in the files count as those of --rules and --crd. Exit code 1 if an operation would wait
    for one of them, or fail.
    """
    of_file = _rules(rules) if rules else {}
    found = list(_subjects(kubeconfig, subjects, namespace))
    known = {kind: crd for path in crds for kind, crd in _crds(path).items()} | crds_of(obj for obj, _ in found)
    of_file = {**of_file, **_written([obj for obj, _ in found])}
    judged = [(obj, crd or known.get(kind_of(obj))) for obj, crd in found if not rule_files.is_rules(obj)]
    if not judged:
        raise InvalidPackage(f"no objects in {', '.join(subjects)}; name a file of objects with their status, or KIND/NAME")
    for sentence in _suspicious(judged, of_file):
        echo(f"warning: {sentence}", err=True)
    verdicts = [explained.verdict(resource_for(obj, crd), obj, of_file.get(kind_of(obj))) for obj, crd in judged]
    if output == "json":
        print_json([_as_json(verdict) for verdict in verdicts])
    else:
        _show(verdicts, explain=explain)
    if not all(verdict.health.settled for verdict in verdicts):
        raise click.exceptions.Exit(1)


def _subjects(kubeconfig: Kubeconfig, subjects: Sequence[str], namespace: str) -> Iterator[tuple[Object, Object | None]]:
    """The objects with their CRDs, as far as a cluster is asked for them."""
    named = [subject for subject in subjects if subject != "-" and not Path(subject).exists()]
    if unclear := [subject for subject in named if subject.count("/") != 1 or not all(subject.split("/"))]:
        raise click.UsageError(f"{unclear[0]}: there is no such file, and it is no KIND/NAME")
    for subject in subjects:
        if subject == "-":
            yield from ((obj, None) for obj in _objects("-", _read("-", sys.stdin)))
        elif subject not in named:
            yield from ((obj, None) for obj in _objects(subject, _content(Path(subject))))
    if named:
        with Cluster(kubeconfig) as cluster:
            crds: dict[GroupKind, Object | None] = {}
            for subject in named:
                kind, _, name = subject.partition("/")
                resource = _resource(cluster, kind)
                where = namespace if resource.namespaced else ""
                live = cluster.client.read(resource, ObjectKey(*resource.group_kind, where, name))
                crd = crd_of(cluster, resource.group_kind, crds)
                for one in filter(None, (live, crd)):
                    _check_annotations(one)
                yield live, crd


def _resource(cluster: Cluster, kind: str) -> Resource:
    name, _, group = kind.lower().partition(".")
    served = [one for one in cluster.resources if name in (one.group_kind.kind.lower(), one.plural)]
    matching = [one for one in served if group in ("", one.group_kind.group)]
    kinds = {one.group_kind for one in matching}
    if len(kinds) != 1:
        also = f"; write one of {', '.join(sorted(map(str, kinds or {one.group_kind for one in served})))}" if served else ""
        raise InvalidRequest(f"{kind}: the cluster serves {'several kinds' if kinds else 'no kind'} of that name{also}")
    return cluster.resources.find(kinds.pop()) or matching[0]


def _content(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return _read(str(path), file)
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be read: {error.strerror}") from None


def _read(name: str, file: IO[str]) -> str:
    try:
        content = file.read(_LARGEST + 1)
    except UnicodeDecodeError as error:
        raise InvalidPackage(f"{name}: is no text of UTF-8: {error}") from None
    if len(content) > _LARGEST:
        raise InvalidPackage(f"{name}: has more than {_LARGEST // 1024**2} Mi characters; name fewer objects")
    return content


def _objects(name: str, content: str) -> list[Object]:
    found: list[Object] = []
    try:
        for number, document in documents(content):
            several = _flat(document, f"{name}, document {number}")
            for one in several:
                if not rule_files.is_rules(one):
                    _check_annotations(one, f"{name}, document {number}: ")
            found += several
    except DocumentError as error:
        raise InvalidPackage(f"{name}, document {error.document}: {error}") from None
    return found


def _flat(document: Any, source: str) -> list[Object]:
    if isinstance(document, dict) and text(document, "kind").endswith("List") and isinstance(document.get("items"), list):
        items = document["items"]
        return [one for index, item in enumerate(items) for one in _flat(item, f"{source}: items[{index}]")]
    if rule_files.is_rules(document):
        return [document]
    if not isinstance(document, dict) or not text(document, "kind") or not text(document, "metadata", "name"):
        raise InvalidPackage(f"{source}: is no object; it needs apiVersion, kind and metadata.name")
    return [document]


def _crds(path: Path) -> Mapping[GroupKind, Object]:
    found = crds_of(_objects(str(path), _content(path)))
    if not found:
        raise click.UsageError(f"--crd {path}: has no CustomResourceDefinition")
    return found


def _suspicious(judged: Sequence[tuple[Object, Object | None]], rules: Mapping[GroupKind, Rules]) -> Iterator[str]:
    """A sentence for each rule with a field that the kind does not have, by its CRD, once."""
    crds = {kind_of(obj): crd for obj, crd in judged if crd}
    objects = [*(obj for obj, _ in judged), *crds.values()]
    kinds = set(map(kind_of, objects))
    of_kinds = [
        f"{found.source} ({kind}).{purpose}: {wrong}"
        for kind, found in rules.items()
        for purpose, one in (found.in_order() if kind in kinds else ())
        if (wrong := unknown_field_of_cel(one.text, crds.get(kind)))
    ]
    yield from dict.fromkeys([*of_kinds, *rule_checks.of_annotations(objects, crds)])


def _check_annotations(obj: Object, where: str = "") -> None:
    """Raises InvalidPackage, as `validate` does, for an annotation that an operation would not read as it is meant."""
    given = field(obj, "metadata", "annotations")
    if given is not None and not isinstance(given, dict):
        raise InvalidPackage(f"{key_of(obj)}: metadata.annotations: is {type_name(given)}, must be a mapping")
    try:
        normal_form.check_annotations(obj)
        for name in annotations_of(obj):
            if wanted := reserved_marks.meant(name):
                raise InvalidPackage(f"metadata.annotations.{name}: is unknown; write {wanted}")
    except InvalidPackage as error:
        raise InvalidPackage(f"{where}{key_of(obj)}: {error}") from None


def _rules(path: Path) -> Mapping[GroupKind, Rules]:
    """The rules of a file, of a folder of such files, or of the folder of a package."""
    if (path / TOSCA_META).is_file():
        path /= health_rules.file(definitions(path))
        if not path.is_file():
            raise InvalidRequest(f"--rules {path}: there is no such file, and the package has no rules without it")
    found = operator_rules.read(path, "rules")
    if not found:
        raise InvalidRequest(f"--rules: no rules in {path}; name a file with {rule_files.LIST}, or a folder of such files")
    return found


def _written(objects: Sequence[Object]) -> Mapping[GroupKind, Rules]:
    """The rules for kinds that are among the objects."""
    found: dict[GroupKind, Rules] = {}
    for document in filter(rule_files.is_rules, objects):
        try:
            read = rule_files.read(document)
        except ExpressionError as error:
            raise InvalidPackage(str(error)) from None
        found |= {kind: of_texts(rules, "rules of the package") for kind, rules in read.items()}
    return found


def _as_json(verdict: Verdict) -> dict[str, Any]:
    health = verdict.health
    return {
        "object": str(verdict.key),
        "state": health.state.value,
        "trouble": health.trouble,
        "waits": not health.settled,
        "reason": redact(health.reason),
        "message": redact(health.message),
        "source": verdict.source,
        "field": verdict.field,
        "line": redact(verdict.line),
        "asked": [{**one._asdict(), "said": redact(one.said)} for one in verdict.asked],
    }


def _show(verdicts: Sequence[Verdict], *, explain: bool) -> None:
    rows = []
    for verdict in verdicts:
        decided = f"{verdict.source}: {verdict.field}" if verdict.field else verdict.source
        health = verdict.health
        state = f"{health.state.value}, in trouble" if health.trouble and health.state is State.WAITING else health.state.value
        line = f"; if it is ready as it is, annotate it with {verdict.line}" if verdict.line else ""
        rows.append((state, str(verdict.key), redact(health.reason), decided, redact(health.message + line)))
    print_table(_COLUMNS, rows)
    for verdict in verdicts if explain else ():
        echo(f"{verdict.key}:")
        for asked in verdict.asked:
            echo(f"  {'*' if asked.decides else ' '} {asked.source}: {asked.rule}: {redact(asked.said)}")
