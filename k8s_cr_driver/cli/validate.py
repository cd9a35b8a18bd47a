# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr validate`: checks a package without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from k8s_cr_driver.cli import inspection, package_input, package_update, scaling_policies
from k8s_cr_driver.cli.findings import Findings
from k8s_cr_driver.cli.output import output_option
from k8s_cr_driver.cli.package_request import Wish, with_request, with_wish
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import tosca_meta, vnfd
from k8s_cr_driver.scaffold.model import enumerated


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
@with_wish
@click.option(
    "--request",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also the body of an instantiate: its keys, files, parameters and flavour.",
)
@output_option("github", "sarif")
@click.option("--format", "format", type=click.Choice(["github", "sarif"]), help="As -o, for a CI: annotations, or SARIF.")
def validate(path: Path, update_of: Path | None, wish: Wish, request: Path | None, output: str, format: str | None) -> None:
    """Check PACKAGE, a folder or a CSAR, without a cluster.

    TOSCA.meta and its hashes, the VNFD, manifests, parameters, objects against the package's own CRDs and against Kubernetes,
    VDUs, the order of creation. All that is found is shown, with its file and line, and a code that `k8s-cr explain` knows.
    Warnings name what the cluster must have, notes the scripts that run on the conductor. Samples stand for parameters without
    a default that are not given.
    """
    findings = Findings()
    try:
        with package_input.opened(path) as folder:
            wish = with_request(folder, replace(wish, request=request), findings)
            objects = inspection.inspect(folder, wish, findings)
            if path.is_file() and (unnamed := tosca_meta.unnamed(folder)):
                what = f"not named in {tosca_meta.TOSCA_META}, and Tacker unpacks only what that names"
                findings.warn("tosca-meta", [f"{enumerated(unnamed)}: {what}; make the CSAR with k8s-cr package"])
            if update_of is not None:
                with package_input.opened(update_of) as old:
                    compare(old, folder, objects, wish, findings)
    except InvalidPackage as error:  # it cannot even be opened
        findings.add("tosca-meta", [str(error)])
    findings.print(format or output, str(path))
    if findings.problems:
        raise click.exceptions.Exit(1)


def compare(old: Path, new: Path, objects: Sequence[Object], wish: Wish, findings: Findings) -> None:
    """Adds what a change from `old` cannot take over."""
    try:
        former = package_input.load(old, wish.given, lenient=True, all_hooks=wish.all_hooks)
        package_input.place(former, wish.place(new))
        before, after = vnfd.flavours(old), vnfd.flavours(new)
    except (InvalidPackage, InvalidRequest) as error:
        findings.add("update", [f"The package to update from: {error}"])
        return
    findings.add("update", package_update.immutable_changes(former, objects))
    findings.warn("update", package_update.narrower_crds(former, objects))
    findings.add("update", package_update.shrinking_claims(former, objects))
    findings.add("update", package_update.lost_versions(former, objects))
    findings.add("update", (f"Flavour {name} vanishes; instances keep theirs" for name in sorted(before.keys() - after.keys())))
    for name in sorted(before.keys() & after.keys()):
        lost = vnfd.vdu_nodes(before[name]).keys() - vnfd.vdu_nodes(after[name]).keys()
        findings.warn("update", (f"VDU {vdu} vanishes, with its VNFCs and their objects" for vdu in sorted(lost)))
        added = scaling_policies.aspects(after[name]).keys() - scaling_policies.aspects(before[name]).keys()
        when = "Tacker can scale it after its next database synchronization, not before"
        findings.warn("update", (f"Scaling aspect {aspect} is new: {when}" for aspect in sorted(added)))
