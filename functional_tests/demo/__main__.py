# SPDX-License-Identifier: Apache-2.0
"""`python -m functional_tests.demo [--openstack | --ha]`: sample packages through a real Tacker.

Everything goes through Tacker's REST API. A live table shows the objects on the real Kubernetes meanwhile, or the steps on the
servers.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from types import ModuleType

import click

from builds.progress import step
from functional_tests import sample_onboarding, vim
from functional_tests.client import ApiError, Client, OperationError
from functional_tests.credentials.receiver import Receiver
from functional_tests.observer import Observer
from functional_tests.testbed import bed, paths, preconditions
from functional_tests.testbed.kubernetes import Kubernetes
from functional_tests.testbed.ledger import Ledger
from functional_tests.testbed.tacker import onboarding

from . import ha, in_memory, on_openstack
from .stage import CONSOLE, Stage


@click.command()
@click.option("--openstack", "on_cloud", is_flag=True, help="With clusters of servers, on a real OpenStack.")
@click.option("--ha", "has_masters", is_flag=True, help="With three masters on servers of Heat, of which one is killed.")
def main(on_cloud: bool, has_masters: bool) -> None:
    """The whole demo; a bed that was not there before is removed at the end."""
    started = time.monotonic()
    if has_masters:
        with bed.during_run(list(ha.PARTS)):
            ha.play()
    else:
        _play(on_openstack if on_cloud else in_memory)
    CONSOLE.print(f"Done in {time.monotonic() - started:.0f} s.", style="bold green")


def _play(demo: ModuleType) -> None:
    """One with a management cluster."""
    with bed.during_run(list(demo.PARTS)):
        environment = bed.environment()
        ledger = Ledger(paths.STATE)
        sample_onboarding.load(Kubernetes(ledger), demo.SAMPLES, demo.PROVIDER)
        kubeconfig = Path(environment["KUBECONFIG"])
        with step("Making an account for Tacker on the cluster"):
            connection = vim.connection_info(kubeconfig)
        with tempfile.TemporaryDirectory() as work, Observer(kubeconfig) as observer:
            receiver = Receiver.prepare(Path(work), environment, registers=demo.REGISTERS)
            client = Client({**os.environ, **environment}, partial(onboarding, ledger))
            stage = Stage(client=client, connection=connection, observer=observer, receiver=receiver)
            with stage.step("Make and onboard VNF packages"):
                stage.samples = _onboard(client, demo.SAMPLES, demo.PROVIDER, receiver)
            receiver.start()
            try:
                demo.run(stage)
            finally:
                receiver.forget()
        stage.report()


def _onboard(
    client: Client, names: tuple[str, ...], provider: str, receiver: Receiver
) -> dict[str, sample_onboarding.Sample]:
    settings = receiver.folder / "sender.yaml"
    settings.write_text(receiver.settings())
    return sample_onboarding.onboard(client, names, provider, settings)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main(standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        sys.exit("Interrupted; nothing is left running.")
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (OperationError, ApiError, preconditions.PreconditionError, bed.BusyError, TimeoutError) as error:
        hint = "start the bed before (`python -m functional_tests.testbed up`) and its logs stay for a look"
        sys.exit(f"{error}\nThe logs were in {paths.STATE}; {hint}.")
