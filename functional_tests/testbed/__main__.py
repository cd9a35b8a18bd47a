# SPDX-License-Identifier: Apache-2.0
"""
`python -m functional_tests.testbed up|down|status|env|load|onboard`: the test bed from the command line.

What only `load` and `onboard` use is imported there: it takes longer than `env` and `status` themselves.
"""

import functools
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from . import bed, paths, preconditions
from .kubernetes import Kubernetes
from .ledger import Ledger


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
    for name, value in _environment().items():
        click.echo(f"export {name}={shlex.quote(value)}")


@main.command(help="Load images of sample packages. The controllers that they install are built first.")
@click.option("--infrastructure", "provider", default="in-memory", show_default=True, help="That of a management cluster.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def load(names: tuple[str, ...], provider: str) -> None:
    from functional_tests import sample_onboarding
    from sample_packages import infrastructure
    from sample_packages.__main__ import FOLDERS

    for value, known in [(provider, infrastructure.PROVIDERS), *((name, FOLDERS) for name in names)]:
        click.Choice(list(known)).convert(value, None, None)
    _environment("kubernetes")
    if not bed.is_own(bed.cluster()):
        fail("only the test bed's own Kubernetes can be given images: begin with `up` without `--cluster`")
    sample_onboarding.load(Kubernetes(Ledger(paths.STATE)), names, provider)


@main.command(help="Onboard VNF packages. Prints the VNFD id of each. One conductor after the other takes it.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(True, dir_okay=False, path_type=Path))
def onboard(files: tuple[Path, ...]) -> None:
    from keystoneauth1.exceptions import ClientException

    from functional_tests.client import ApiError, Client, OnboardingError

    from .tacker import CONDUCTORS, Conductor, onboarding

    ledger = Ledger(paths.STATE)
    client = Client({**os.environ, **_environment("tacker")}, functools.partial(onboarding, ledger))
    for file in files:
        try:
            click.echo(client.onboard(file)["vnfdId"])
        except (ApiError, ClientException) as error:
            fail(f"{file}: {error}")
        except OnboardingError as error:
            fail(f"{error}: {' and '.join(str(Conductor(ledger, name).log) for name in CONDUCTORS)}")


def _environment(*parts: str) -> bed.Environment:
    """The variables of the complete parts, of which `parts` must be some."""
    complete = bed.environments()
    missing = [part for part in parts if part not in complete]
    if missing or not complete:
        fail(f"{' and '.join(missing) or 'the bed'} is down: start it with `python -m functional_tests.testbed up`")
    return bed.environment()


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
