# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr vim`: the vimConnectionInfo of a cluster, with credentials of an account that may do just what a package needs."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.cluster import Cluster, Kubeconfig, on_cluster
from k8s_cr_driver.cli.output import echo, write_file
from k8s_cr_driver.cli.package_request import Wish, with_wish
from k8s_cr_driver.cli.role import account as of_text
from k8s_cr_driver.cli.role import objects_of, plural_without_cluster
from k8s_cr_driver.credentials.service_account import token_of
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.package import manifests
from k8s_cr_driver.vnf import roles

MANAGER = "k8s-cr-vim"
"""The field manager of the account, its roles and its token."""
NAME, TYPE = "vim1", "ETSINFV.KUBERNETES.V_1"


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr vim --package web --account tacker/web -o request.json
      k8s-cr vim --kubeconfig admin.conf
    """
)
@on_cluster
@click.option("--package", "path", type=package_input.PackagePath(), metavar="PACKAGE", help="Whose request.json is completed.")
@click.option("--account", callback=of_text, metavar="[NAMESPACE/]NAME", help="Make this ServiceAccount, for PACKAGE.")
@click.option("--inventory-namespace", default="default", metavar="NAME", help="As in tacker.conf.", show_default=True)
@with_wish
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file that only you may read; else printed."
)
def vim(
    kubeconfig: Kubeconfig,
    path: Path | None,
    account: roles.Account | None,
    output: Path | None,
    inventory_namespace: str,
    wish: Wish,
) -> None:
    """Print the vimConnectionInfo of a cluster, or with --package the package's request.json with it.

    The credentials are those of the kubeconfig. With --account they are those of a ServiceAccount that has just the permissions
    that `k8s-cr role` prints, and a token that does not expire: it is made, or changed to what the package needs now. The
    output has the token in it.
    """
    if account and path is None:
        raise click.UsageError("--account: needs --package, whose permissions the account gets")
    endpoint = kubeconfig.endpoint()
    with package_input.opened(path) if path else nullcontext(None) as folder:
        token = endpoint.authorization.removeprefix("Bearer ")
        if account and folder:
            token = _token_of_account(kubeconfig, folder, account, inventory_namespace, wish)
        info = {NAME: connection_info(endpoint, token)}
        request = package_input.request_of(folder) if folder else {}
    text = json.dumps({**request, "vimConnectionInfo": info} if request else info, indent=2)
    if output:
        write_file(output, text + "\n", 0o600)
        echo(f"Wrote {output}", err=True)
    else:
        click.echo(text)
    if _is_loopback(endpoint.url):
        echo(
            f"{endpoint.url}: is an address of this host; the conductor needs one that leads to the cluster from its host",
            err=True,
        )


def connection_info(endpoint: Endpoint, token: str) -> dict[str, Any]:
    """One entry of vimConnectionInfo. Raises UsageError for what it cannot have."""
    if not endpoint.verify:
        raise click.UsageError("the kubeconfig has insecure-skip-tls-verify; give its CA as certificate-authority-data")
    if not token:
        raise click.UsageError(
            "the kubeconfig has no token, and a VIM takes no client certificate; give --package and --account, to make a "
            "ServiceAccount with one"
        )
    ca = {"ssl_ca_cert": endpoint.ca} if endpoint.ca else {}
    return {
        "vimType": TYPE,
        "interfaceInfo": {"endpoint": endpoint.url, **ca},
        "accessInfo": {"bearer_token": token},
    }


def _token_of_account(
    kubeconfig: Kubeconfig, folder: Path, account: roles.Account, inventory_namespace: str, wish: Wish
) -> str:
    objects, _ = objects_of(folder, wish)
    with Cluster(kubeconfig) as cluster:
        _place(cluster, objects)
        made = roles.of(objects, _plural(cluster, objects), inventory_namespace, account)
        token = token_of(cluster.client, [*made, roles.token_secret(account)], MANAGER)
    echo(f"ServiceAccount {account.namespace}/{account.name} has the permissions that the package needs", err=True)
    return token


def _place(cluster: Cluster, objects: Sequence[Object]) -> None:
    """Takes the namespace from objects of kinds that, as the cluster says, have none."""

    def scope_of(kind: GroupKind, version: str) -> bool | None:
        del version
        resource = cluster.resources.find(kind)
        return True if resource is None else resource.namespaced

    manifests.place(objects, scope_of)


def _plural(cluster: Cluster, objects: Sequence[Object]) -> roles.Plural:
    otherwise = plural_without_cluster(objects)

    def plural(kind: GroupKind) -> str:
        resource = cluster.resources.find(kind)
        return resource.plural if resource else otherwise(kind)

    return plural


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
