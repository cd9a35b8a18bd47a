# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr role`: what an account needs to operate a package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.package_request import Wish, with_wish
from k8s_cr_driver.objects.backends import guessed_plural
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.package.manifests import is_namespace
from k8s_cr_driver.scaffold import yaml_text
from k8s_cr_driver.vnf import roles

_PLURALS = {GroupKind("", "Endpoints"): "endpoints"}


def account(context: click.Context, parameter: click.Parameter, given: str | None) -> roles.Account | None:
    """A callback for NAME or NAMESPACE/NAME."""
    if given is None:
        return None
    namespace, slash, name = given.rpartition("/")
    if not all(map(is_namespace, (namespace or "default", name))) or (slash and not namespace):
        raise click.BadParameter(
            f"{given!r} is no NAME or NAMESPACE/NAME of lower-case letters, digits and -", context, parameter
        )
    return roles.Account(namespace or "kube-system", name)


def objects_of(folder: Path, wish: Wish) -> tuple[list[Object], set[GroupKind]]:
    """The objects of a package in their namespaces, samples for parameters that have no value; and kinds of unknown scope."""
    objects = package_input.load(folder, wish.given, wish.files, lenient=True, all_hooks=wish.all_hooks)
    return objects, package_input.place(objects, wish.place(folder))


def plural_without_cluster(objects: Sequence[Object]) -> roles.Plural:
    """As the CRDs of the package say, else by English grammar."""
    said = {kind: text(crd, "spec", "names", "plural") for kind, crd in crds_of(objects).items()}
    return lambda kind: said.get(kind) or _PLURALS.get(kind) or guessed_plural(kind.kind.lower())


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr role web | kubectl apply -f -
      k8s-cr role web.csar --namespace blue --account tacker/web
    """
)
@click.argument("path", metavar="PACKAGE", type=package_input.PackagePath())
@click.option("--account", default="tacker", callback=account, metavar="[NAMESPACE/]NAME", help="Else kube-system/tacker.")
@click.option("--inventory-namespace", default="default", metavar="NAME", help="As in tacker.conf.", show_default=True)
@with_wish
def role(path: Path, account: roles.Account, inventory_namespace: str, wish: Wish) -> None:
    """Print a ServiceAccount with just the permissions that the driver needs for PACKAGE, as manifests.

    A Role for each namespace, and a ClusterRole for what is in none. They have the account's name, so those of another package
    replace them: give each package an --account of its own. Without a cluster the resources of kinds that the package does not
    define are named by English grammar, and the kinds are taken for namespaced.
    """
    with package_input.opened(path) as folder:
        objects, unknown = objects_of(folder, wish)
    if unknown:
        names = ", ".join(map(str, sorted(unknown)))
        click.echo(f"Taken for namespaced, as the package does not define them: {names}", err=True)
    made = roles.of(objects, plural_without_cluster(objects), inventory_namespace, account)
    click.echo(yaml_text.dump_all(made), nl=False)
