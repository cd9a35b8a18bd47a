# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr init`: manifests, a kustomization or a chart become the folder of a package."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli import init_sources, init_state
from k8s_cr_driver.cli.findings import Findings
from k8s_cr_driver.cli.inspection import inspect
from k8s_cr_driver.cli.output import counted, echo, print_table
from k8s_cr_driver.cli.package_input import dns_label, label_of
from k8s_cr_driver.cli.package_request import Wish
from k8s_cr_driver.cli.validate import compare
from k8s_cr_driver.package.tosca_meta import check_links
from k8s_cr_driver.scaffold import merge, package_files, parameters
from k8s_cr_driver.scaffold.model import Choice, Scaffold

_COLUMNS = ("object", "chosen", "why")


def _parameters(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [(one.partition("=")[0], one.partition("=")[2]) for one in given]
    for name, _ in pairs:
        if not parameters.NAME.fullmatch(name):
            raise click.BadParameter(f"{name!r} is no name: letters, digits, _, and no digit first", context, parameter)
    if len({name for name, _ in pairs}) < len(pairs):
        raise click.BadParameter("a NAME is given twice", context, parameter)
    return pairs


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr init crontab --from manifests/
      k8s-cr init web --from oci://registry.example.com/charts/web --set replicas=2 --param TAG=image.tag
      kubectl kustomize overlay | k8s-cr init web --from -
    """
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--from", "source", required=True, metavar="PATH", help="A chart, a kustomization, a folder or a file of manifests, or -."
)
@click.option("--namespace", callback=dns_label, metavar="NAME", help="Of objects that name none; else default.")
@click.option(
    "--param", "given", multiple=True, callback=_parameters, metavar="NAME[=PATH]", help="A chart's value, or ${NAME}."
)
@click.option("-f", "--values", multiple=True, metavar="FILE", help="Of a chart, as for helm.")
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Of a chart, as for helm.")
@click.option("--version", metavar="VERSION", help="Of a chart of a registry or a repository.")
@click.option("--kube-version", metavar="VERSION", help="The Kubernetes that a chart is rendered for.")
@click.option("--api-versions", multiple=True, metavar="GROUP/VERSION", help="What the cluster serves, for a chart that asks.")
def init(folder: Path, **options: Any) -> None:
    """Make FOLDER, which `package` makes a CSAR of, from a Helm chart or from Kubernetes manifests.

    A VNFD with a VDU and a scaling aspect for each object that has a count, TOSCA.meta, the manifests, and request.json for
    the instantiate. A table says what was chosen, and why. Nothing is overwritten: a second run, as with a newer chart, takes
    the options of the first, keeps what you have changed since, and names the conflicts.
    """
    is_update, id = init_state.exists(folder), str(uuid.uuid4())
    if not is_update and folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder}: is there, is not empty, and not of k8s-cr init; name a new folder")
    if is_update:
        check_links(folder)
        id, options = _as_before(init_state.options(folder), options)
    wish = init_sources.Wish(**{**options, "namespace": options["namespace"] or "default"}, release=label_of(folder))
    found = init_sources.gather(wish)
    before = init_state.made(folder) if is_update else {}
    made = _made(found, wish, id)
    if is_update and made.files != before:  # Tacker has one package of each id
        made = _made(found, wish, id := _next_id(id, made))
    choices = [*found.choices, *made.choices]
    with _copied(folder) as former:
        outcome = merge.files(before, init_state.current(folder, {**before, **made.files}), made.files)
        init_state.write(folder, outcome.files)
        init_state.record(folder, made.files, wish.as_options() | {"descriptor_id": id})
        choices += outcome.choices if is_update else ()
        _report(folder, choices, wish.namespace, outcome, former if is_update else None)


def _as_before(before: dict[str, Any], given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The id, and the options with those of the run before in place of those that are not given."""
    kept = {name: before[name] for name in given if not given[name] and before.get(name)}
    said = {name: value for name, value in kept.items() if (name, value) != ("namespace", "default")}
    if said:
        # Files of values, too: the folder may be that of others.
        shown = "; ".join(f"{name}: {value}" for name, value in said.items() if name != "sets")
        echo(f"As before: {', '.join(said)}" + (f" ({shown})" if shown else ""), err=True)
    return str(before.get("descriptor_id") or uuid.uuid4()), {**given, **kept}


def _next_id(former: str, made: Scaffold) -> str:
    """The same for the same content, so that a run after one that was killed makes the same."""
    try:
        space = uuid.UUID(former)
    except ValueError:
        return str(uuid.uuid4())
    return str(uuid.uuid5(space, hashlib.sha256(repr(sorted(made.files.items())).encode()).hexdigest()))


def _made(found: init_sources.Gathered, wish: init_sources.Wish, id: str) -> Scaffold:
    return package_files.of(found.files, found.product, id, namespace=wish.namespace, parameters=found.parameters)


@contextlib.contextmanager
def _copied(folder: Path) -> Iterator[Path]:
    """A copy of the package as it is, for the duration."""
    with tempfile.TemporaryDirectory(prefix="k8s-cr-") as temporary:
        copy = Path(temporary, "package")
        if folder.exists():
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".*"))
        yield copy


def _report(folder: Path, choices: Sequence[Choice], namespace: str, outcome: merge.Outcome, former: Path | None) -> None:
    """The table, the conflicts, what `validate` finds, and what it finds of a change from the package before."""
    if choices:
        print_table(_COLUMNS, choices)
    findings, wish = Findings(), Wish(namespace)
    objects = inspect(folder, wish, findings)
    if former and outcome.files and not findings.problems:
        before = len(findings.found)
        compare(former, folder, objects, wish, findings)
        if len(findings.found) > before:
            echo("A change of an instance from the package before to this one is among the findings [update]", err=True)
    for conflict in outcome.conflicts:
        echo(f"conflict: {conflict}; what is made now is in {folder / init_state.FOLDER}/made", colour="red")
    findings.show()
    done = "Made" if former is None else "Updated" if outcome.files else "Nothing to update in"
    counts = [counted(len(findings.problems), "error"), counted(len(findings.warnings), "warning")]
    counts += [counted(len(outcome.conflicts), "conflict")] if former else []
    echo(f"{done} {folder}: {', '.join(counts)}", err=True)
    if findings.problems or outcome.conflicts:
        raise click.exceptions.Exit(1)
