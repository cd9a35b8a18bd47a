# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr init`: manifests, a kustomization or a chart become the folder of a package."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli import init_sources, package_input
from k8s_cr_driver.cli.output import counted, echo, print_table
from k8s_cr_driver.cli.validate import Findings, inspect
from k8s_cr_driver.package.check import check
from k8s_cr_driver.package.manifests import is_namespace
from k8s_cr_driver.scaffold import package_files, parameters
from k8s_cr_driver.scaffold.model import Choice, Scaffold

_COLUMNS = ("object", "chosen", "why")


def _namespace(context: click.Context, parameter: click.Parameter, name: str) -> str:
    if not is_namespace(name):
        raise click.BadParameter(f"{name!r} is no name of a Namespace", context, parameter)
    return name


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
@click.option("--namespace", default="default", callback=_namespace, help="Of objects that name none.", show_default=True)
@click.option(
    "--param", "given", multiple=True, callback=_parameters, metavar="NAME[=PATH]", help="A chart's value, or ${NAME}."
)
@click.option("-f", "--values", multiple=True, metavar="FILE", help="Of a chart, as for helm.")
@click.option("--set", "sets", multiple=True, metavar="PATH=VALUE", help="Of a chart, as for helm.")
@click.option("--version", metavar="VERSION", help="Of a chart of a registry or a repository.")
@click.option("--kube-version", metavar="VERSION", help="The Kubernetes that a chart is rendered for.")
@click.option("--api-versions", multiple=True, metavar="GROUP/VERSION", help="What the cluster serves, for a chart that asks.")
def init(folder: Path, source: str, namespace: str, given: list[tuple[str, str]], **of_chart: Any) -> None:
    """Make FOLDER, which `package` makes a CSAR of, from a Helm chart or from Kubernetes manifests.

    A VNFD with a VDU and a scaling aspect for each object that has a count, TOSCA.meta, the manifests, and request.json for
    the instantiate. A table says what was chosen, and why. Nothing is overwritten.
    """
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder}: is there, and is not empty; name a new folder")
    found = init_sources.gather(init_sources.Wish(source, namespace, _name(folder), given, **of_chart))
    made = package_files.of(found.files, found.product, str(uuid.uuid4()), namespace=namespace, parameters=found.parameters)
    _write(folder, made)
    _report(folder, [*found.choices, *made.choices], namespace)


def _name(folder: Path) -> str:
    """The name of the folder as a DNS label."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")[:63].strip("-")
    return name or "vnf"


def _write(folder: Path, made: Scaffold) -> None:
    for name, text in made.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)


def _report(folder: Path, choices: list[Choice], namespace: str) -> None:
    if choices:
        print_table(_COLUMNS, choices)
    findings = Findings(check(folder))
    if not findings.problems:
        inspect(folder, package_input.sufficient(folder, {}), (), namespace, findings)
    findings.show()
    echo(f"Made {folder}: {counted(len(findings.problems), 'error')}, {counted(len(findings.warnings), 'warning')}", err=True)
    if findings.problems:
        raise click.exceptions.Exit(1)
