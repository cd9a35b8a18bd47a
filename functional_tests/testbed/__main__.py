# SPDX-License-Identifier: Apache-2.0
"""`python -m functional_tests.testbed up|down|status|env`: the test bed from the command line."""

import shlex
import signal
import sys
from typing import NoReturn

import click

from . import bed, preconditions


@click.group(help="A real Kubernetes and a real Tacker on this host.")
def main() -> None:
    # `kill` ends a run as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@main.command(help=f"Start PARTS ({', '.join(bed.PARTS)}) unless they are up; by default {' and '.join(bed.USUAL)}.")
@bed.CLUSTER_OPTION
@click.argument("parts", metavar="[PART]...", nargs=-1, type=click.Choice(bed.PARTS))
def up(parts: tuple[str, ...], cluster: str) -> None:
    bed.up(list(parts or bed.USUAL), cluster)


@main.command(help="Remove everything that `up` has made, except its caches.")
def down() -> None:
    bed.down()


@main.command(help="Say which parts are up; ends with 1 when a process of the bed has died.")
def status() -> None:
    complete = bed.environments()
    for part in bed.PARTS:
        click.echo(f"{part}: {'up' if part in complete else 'down'}")
    if dead := bed.ended():
        fail(f"these have ended: {', '.join(dead)}")


@main.command(help="Print what a shell evaluates to use the bed: KUBECONFIG and, with Tacker, OS_*.")
def env() -> None:
    variables = {name: value for part in bed.environments().values() for name, value in part.items()}
    if not variables:
        fail("the bed is down: start it with `python -m functional_tests.testbed up`")
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")


def fail(message: str) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(1)


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (preconditions.PreconditionError, bed.BusyError, RuntimeError, TimeoutError, FileExistsError) as error:
        fail(str(error))
