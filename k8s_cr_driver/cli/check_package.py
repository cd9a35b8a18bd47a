# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr check-package`: which code of a package Tacker may run on the conductor, and whether the operator allows it.

The driver checks the same before each operation. But the scripts of `*_start` have run by then, and those of operations without
the driver run without a check: so an operator looks before the package is onboarded.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
from oslo_config import cfg

from k8s_cr_driver.cli import package_input, package_scripts
from k8s_cr_driver.cli.output import counted, echo, output_option, print_json
from k8s_cr_driver.cli.package_scripts import Script
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.package import scripts
from k8s_cr_driver.package.tosca_meta import TOSCA_META, check_links


def _digests(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if found := scripts.unusable(values):
        raise click.BadParameter(found[0], context, parameter)
    return values


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr check-package cluster.csar
      k8s-cr check-package cluster.csar --config-file /etc/tacker/tacker.conf
    """
)
@click.argument("path", metavar="PACKAGE", type=package_input.PackagePath())
@click.option(
    "--allow", multiple=True, callback=_digests, metavar="SHA256", help="The digest of a script that is allowed, too."
)
@click.option(
    "--config-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A tacker.conf with allowed_scripts."
)
@output_option()
def check_package(path: Path, allow: tuple[str, ...], config_file: Path | None, output: str) -> None:
    """Check which code of PACKAGE, a folder or a CSAR, may run on the conductor.

    Names each script with its SHA-256, and all other code in the package. Exit code 1 unless all of it is this project's own,
    or allowed by [k8s_cr] allowed_scripts of --config-file, or by --allow. Run it before a package is onboarded.
    """
    allowed = {one.lower() for one in (*allow, *(_configured(config_file) if config_file else ()))}
    with package_input.opened(path) as folder:
        check_links(folder)
        _check_is_package(folder, path)
        found = package_scripts.of(folder, everywhere=True)
    refused = [script for script in found if not _is_allowed(script, allowed)]
    if output == "json":
        print_json({"scripts": [script.as_json() | {"allowed": script not in refused} for script in found]})
    else:
        for script in found:
            verdict, colour = ("not allowed", "red") if script in refused else ("allowed", "green")
            echo(f"{verdict}: {script}", colour=colour)
        remedy = "; read these, then add their SHA-256 to [k8s_cr] allowed_scripts, or give it by --allow" if refused else ""
        echo(f"{path}: {counted(len(found), 'script')}, {len(refused)} of them not allowed{remedy}", err=True)
    if refused:
        raise click.exceptions.Exit(1)


def _check_is_package(folder: Path, path: Path) -> None:
    """Raises InvalidPackage for what Tacker takes for no package: a wrong path must not pass for one without code."""
    if not (folder / TOSCA_META).is_file() and not any(folder.glob("*.y*ml")):
        raise InvalidPackage(f"{path}: has no {TOSCA_META}; {package_input.WANTED}")


def _is_allowed(script: Script, allowed: set[str]) -> bool:
    return bool(script.digest) and (script.is_own or "*" in allowed or script.digest in allowed)


def _configured(file: Path) -> list[str]:
    conf = cfg.ConfigOpts()
    conf.register_opt(cfg.ListOpt("allowed_scripts", default=[]), group="k8s_cr")
    try:
        conf([f"--config-file={file}"], project="tacker")
        allowed = list(conf.k8s_cr.allowed_scripts)
    except (cfg.Error, UnicodeDecodeError) as error:
        line = re.search(r":(\d+), ", error.msg) if isinstance(error, cfg.ConfigFileParseError) else None
        where = f" line {line[1]}:" if line else ""
        raise click.UsageError(f"--config-file {file}:{where} is neither [GROUP], nor NAME = VALUE, nor a comment") from None
    if found := scripts.unusable(allowed):
        raise click.UsageError(f"--config-file {file}: [k8s_cr] allowed_scripts: {found[0]}")
    return allowed
