# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr check-tacker`: whether this driver fits the Tacker that is installed beside it, and its options are right.

The tool loads the command by an entry point, because `cli` works without Tacker. Tacker is imported when the command runs.
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import click


@click.command(
    epilog="""
    \b
    Before an upgrade, in a Python environment with the new Tacker and this driver:
      k8s-cr check-tacker && echo fits

    After a change of options, as the user of the conductor:
      k8s-cr check-tacker --config-file /etc/tacker/tacker.conf --config-file /etc/tacker/tacker.conf.d
    """
)
@click.option(
    "--config-file",
    "configs",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Also what is wrong with the driver's options in a tacker.conf, or in a folder of such files; more than once for "
    "several, of which a later one replaces options of an earlier one.",
)
@click.pass_context
def check_tacker(ctx: click.Context, configs: tuple[Path, ...]) -> None:
    """Check whether the driver fits the Tacker in this Python environment.

    Makes the comparison that the driver makes when a conductor starts: methods, names, signatures, fields and options of Tacker
    that the driver uses. One line for each difference, exit code 1.
    """
    fits = "The driver fits the Tacker in this environment"
    found = [*_differences(), *(_mistakes(configs) if configs else ())]
    click.echo("\n".join(found) or (f"{fits}, and its options are right" if configs else fits))
    ctx.exit(1 if found else 0)


def _mistakes(configs: tuple[Path, ...]) -> list[str]:
    """Of the driver's options in these files, and in the files of these folders."""
    paths = [file for path in configs for file in (sorted(path.glob("*.conf")) if path.is_dir() else [path])]
    mistakes: list[str] = importlib.import_module("k8s_cr_driver.lcm.conf_check").mistakes(paths)
    return mistakes


def _differences() -> list[str]:
    found: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "\nEventlet is deprecated")  # a matter of Tacker's
            tackers = importlib.import_module("tacker.sol_refactored.infra_drivers.kubernetes.kubernetes")
            registration = importlib.import_module("k8s_cr_driver.lcm.registration")
        found += registration.differences(getattr(tackers, "Kubernetes", None))
        found += importlib.import_module("k8s_cr_driver.lcm.tacker_names").differences()
        importlib.import_module("k8s_cr_driver.lcm.driver")
    except Exception as error:  # whatever a module of another Tacker raises
        found.append(f"it cannot be imported: {type(error).__name__}: {error}")
    return found
