# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr check-tacker`: whether this driver fits the Tacker that is installed beside it, before a conductor starts.

The tool loads the command by an entry point, because `cli` works without Tacker. Tacker is imported when the command runs.
"""

from __future__ import annotations

import importlib
import warnings

import click


@click.command(
    epilog="""
    \b
    Before an upgrade, in a Python environment with the new Tacker and this driver:
      k8s-cr check-tacker && echo fits
    """
)
@click.pass_context
def check_tacker(ctx: click.Context) -> None:
    """Check whether the driver fits the Tacker in this Python environment.

    Makes the comparison that the driver makes when a conductor starts: methods, names, signatures, fields and options of Tacker
    that the driver uses. One line for each difference, exit code 1.
    """
    found = _differences()
    click.echo("\n".join(found) or "The driver fits the Tacker in this environment")
    ctx.exit(1 if found else 0)


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
