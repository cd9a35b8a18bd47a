# SPDX-License-Identifier: Apache-2.0
"""`python -m functional_tests.upstream [--driver NAME] [MODULES]`: Tacker's functional tests on the bed, and their results."""

import signal
import sys

import click
from rich.console import Console
from rich.table import Table

from ..testbed import bed
from ..testbed.tacker import OWN_DRIVER, TACKERS_DRIVER
from . import expectation, runs
from .tests import MODULES, Result


@click.command(help=f"Run Tacker's own functional tests on a bed that is up. MODULES (all by default): {', '.join(MODULES)}.")
@click.argument("modules", nargs=-1, type=click.Choice(MODULES))
@click.option(
    "--driver", "drivers", type=click.Choice([TACKERS_DRIVER, OWN_DRIVER]), multiple=True, default=[OWN_DRIVER],
    show_default=True, help="The driver that Tacker loads; may be given twice.",
)  # fmt: skip
@click.option("--record", is_flag=True, help="Write down which tests have passed, for the documents and the tests of the bed.")
def main(modules: tuple[str, ...], drivers: tuple[str, ...], record: bool) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parts = bed.environments()
    if not set(bed.USUAL) <= set(parts):
        sys.exit("The bed is not up: start it with `python -m functional_tests.testbed up`.")
    environment = {name: value for part in parts.values() for name, value in part.items()}
    for driver in drivers:
        results = list(runs.run(environment, driver, modules or MODULES))
        _show(driver, results)
        if record:
            expectation.record(driver, results)


def _show(driver: str, results: list[Result]) -> None:
    table = Table("Test", "Seconds", "Result", title=f"Tacker's functional tests with the driver {driver}")
    for result in results:
        table.add_row(result.test, f"{result.seconds:.0f}", result.problem or "passed")
    Console().print(table)


if __name__ == "__main__":
    main()
