# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr init`: manifests, a kustomization or a chart become the folder of a package."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import click

from k8s_cr_driver.cli import rendering
from k8s_cr_driver.cli.output import counted, echo, print_table
from k8s_cr_driver.cli.validate import Findings, inspect
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.package.check import check
from k8s_cr_driver.package.manifests import is_namespace
from k8s_cr_driver.scaffold import package_files
from k8s_cr_driver.scaffold.model import Choice, ManifestFile, Product, Scaffold

_COLUMNS = ("object", "chosen", "why")


def _namespace(context: click.Context, parameter: click.Parameter, name: str) -> str:
    if not is_namespace(name):
        raise click.BadParameter(f"{name!r} is no name of a Namespace", context, parameter)
    return name


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr init crontab --from manifests/
      kubectl kustomize overlay | k8s-cr init web --from -
    """
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--from", "source", required=True, metavar="PATH", help="A folder or file of manifests, a kustomization, or -.")
@click.option(
    "--namespace",
    default="default",
    callback=_namespace,
    help="Of the instance, for objects that name none.",
    show_default=True,
)
def init(folder: Path, source: str, namespace: str) -> None:
    """Make FOLDER, which `package` makes a CSAR of, from Kubernetes manifests.

    A VNFD with a VDU and a scaling aspect for each object that has a count, TOSCA.meta, the manifests, and request.json for
    the instantiate. A table says what was chosen, and why. Nothing is overwritten.
    """
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder}: is there, and is not empty; name a new folder")
    product = Product(_name(folder))
    files, choices = _manifests(source, product.name)
    made = package_files.of(files, product, str(uuid.uuid4()), namespace=namespace)
    _write(folder, made)
    _report(folder, [*choices, *made.choices], namespace)


def _name(folder: Path) -> str:
    """The name of the folder as a DNS label."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")[:63].strip("-")
    return name or "vnf"


def _manifests(source: str, name: str) -> tuple[list[ManifestFile], list[Choice]]:
    path, target = Path(source), f"{name}.yaml"
    found: tuple[list[ManifestFile], list[Choice]]
    if source == "-":
        found = rendering.standard_input(target), []
    elif not path.exists():
        raise click.UsageError(f"--from {source}: there is no such file or folder")
    elif rendering.is_kustomization(path):
        found = rendering.kustomized(path, target), []
    elif path.name in rendering.KUSTOMIZATIONS:
        found = rendering.kustomized(path.parent, target), []
    else:
        found = rendering.files(path)
    if not found[0]:
        raise InvalidPackage(f"--from {source}: has no Kubernetes objects")
    return found


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
        inspect(folder, {}, (), namespace, findings)
    findings.show()
    echo(f"Made {folder}: {counted(len(findings.problems), 'error')}, {counted(len(findings.warnings), 'warning')}", err=True)
    if findings.problems:
        raise click.exceptions.Exit(1)
