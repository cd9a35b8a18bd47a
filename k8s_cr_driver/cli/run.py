# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr run`: a package on a cluster without Tacker, by the operations that Tacker's conductor would run.

Nothing is remembered beside the cluster: the inventory of the instance names the product and its version as its operation.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import click

from k8s_cr_driver.cli import INTERRUPTED, package_input, run_package
from k8s_cr_driver.cli.cluster import Kubeconfig, never, on_cluster, with_remedy
from k8s_cr_driver.cli.output import counted, echo
from k8s_cr_driver.cli.package_request import Wish, with_wish
from k8s_cr_driver.cli.run_package import Wanted
from k8s_cr_driver.cli.run_table import Board
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.errors import ConnectionFailed, DriverError, InvalidRequest, Refused
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import tosca_meta
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.scaffold.model import enumerated
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session

_OF_A_RUN = re.compile(r"(?:run|removal|recovery) of (\S+) (\S+)")
"""The operation in the inventory of an instance that this command, or `k8s-cr recover`, has made."""
_SECONDS = 600.0


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr run web --kubeconfig kind.kubeconfig
      k8s-cr run web.csar --param REPLICAS=3 --instance blue
      k8s-cr run web --down

    \b
    Exit codes:
      0    all objects are ready, or with --down nothing is left
      1    the package is wrong, or objects were not ready or not deleted in time
      2    the command is wrong
      3    the cluster cannot be reached, or has refused
      130  interrupted; what was applied stays until a run goes on, or --down
    """
)
@click.argument("path", metavar="PACKAGE", type=package_input.PackagePath())
@on_cluster
@click.option("--instance", "name", callback=package_input.dns_label, metavar="NAME", help="Else that of the folder or file.")
@click.option("--down", is_flag=True, help="Remove the instance.")
@click.option("--inventory-namespace", default="default", metavar="NAME", help="Where the inventory is.", show_default=True)
@click.option("--timeout", type=click.FloatRange(min=1), help="Seconds; else wait-timeout of request.json, else 600.")
@with_wish
def run(
    kubeconfig: Kubeconfig,
    path: Path,
    name: str | None,
    down: bool,
    inventory_namespace: str,
    timeout: float | None,
    wish: Wish,
) -> None:
    """Instantiate PACKAGE on a cluster without Tacker, change what an earlier run made to it, or remove that.

    With the driver's own engine: it applies what differs, waits until all objects are ready, and deletes what the package
    has no more. Counts are those of the package. The request.json of the package is read as Tacker reads it: flavour, level
    and additionalParams; options of the command come first. Scripts of the package are not run. Ctrl-C ends the operation
    after the requests in flight, a second one at once.
    """
    instance = name or package_input.label_of(path)
    where = _Where(kubeconfig, instance, inventory_namespace, path, name)
    if down:
        where.remove(wish, timeout or _SECONDS)
        return
    with package_input.opened(path) as folder:
        where.apply(run_package.read(folder, wish, timeout))


@dataclass(frozen=True)
class _Where:
    """An instance on a cluster, and the command that handles it."""

    kubeconfig: Kubeconfig
    instance: str
    inventory_namespace: str
    path: Path
    named: str | None

    def apply(self, wanted: Wanted) -> None:
        """Instantiates, or changes the instance of an earlier run, which may have failed."""
        product, version = wanted.product
        board, seconds = Board(), wanted.options.wait_timeout or _SECONDS
        operating = self._operating(f"run of {product} {version}", seconds, board)
        with operating as operation, self._session(wanted.options, operation) as session:
            before = self._before(session)
            if before is None:
                self._check_lost(session, wanted.objects)
            if before and before[0] != product and not self.named:
                raise click.UsageError(
                    f"Instance {self.instance} on this cluster is of the product {before[0]}, the package of {product}. Give "
                    f"--instance NAME for another instance, or --instance {self.instance} to change that one"
                )
            resources = wanted.resources(session, is_change=before is not None)
            board.expect(obj.key for obj in resources)
            with board.shown():
                if before:
                    session.change(resources, checked=True)
                else:
                    self._begin(session, resources, board)
            left = session.left
        for report in left:
            echo(f"Not ready, and optional: {report}", err=True)
        former = f", before {' '.join(before)}" if before and before != wanted.product else ""
        echo(f"Instance {self.instance}: {product} {version}{former}; {_stated(board)}", err=True)

    @staticmethod
    def _begin(session: Session, resources: list[CustomResource], board: Board) -> None:
        try:
            session.reconcile(resources, prune=Prune(), first=True)
        except Refused:  # what was created is deleted again
            board.forget()
            raise

    def remove(self, wish: Wish, seconds: float) -> None:
        """Deletes all objects of the instance, and its inventory last."""
        board = Board()
        with self._operating("removal", seconds, board) as operation, self._session(Options(), operation) as session:
            before = self._before(session)
            if before is None:
                self._check_lost(session, self._any_objects(wish))
                echo(f"Instance {self.instance}: there is none on this cluster, so nothing is left", err=True)
                return
            operation.id = f"removal of {' '.join(before)}"
            with board.shown():
                session.reconcile([], prune=Prune())
        echo(f"Instance {self.instance}: removed; {_stated(board)}", err=True)

    def _before(self, session: Session) -> tuple[str, str] | None:
        """Product and version of the instance; None if there is none. A usage error for one of Tacker's."""
        content = session.inventory.read()
        if content is None:
            return None
        made = _OF_A_RUN.fullmatch(content.operation)
        if made is None:
            raise click.UsageError(
                f"VNF instance {self.instance} was not made by `k8s-cr run`; use Tacker's client, or if Tacker has no record "
                "of it, k8s-cr purge"
            )
        return made[1], made[2]

    def _any_objects(self, wish: Wish) -> list[Object]:
        """Those of all manifests, of which an object may be in several: a request may name some of the files."""
        with package_input.opened(self.path) as folder:
            files = tosca_meta.manifest_files(folder)
            read = (package_input.load(folder, wish.given, [name], lenient=True, all_hooks=True) for name in files)
            return [obj for objects in read for obj in objects]

    def _check_lost(self, session: Session, objects: list[Object]) -> None:
        """A usage error if the instance has objects and no inventory: a first run that is refused would delete them."""
        if own := session.owned(objects):
            raise click.UsageError(
                f"Instance {self.instance} has no inventory in namespace {self.inventory_namespace}, but objects: "
                f"{enumerated(own)}. If its inventory is elsewhere, give --inventory-namespace. "
                f"If somebody has deleted it: k8s-cr recover {self.instance} {shlex.quote(str(self.path))}"
            )

    @contextlib.contextmanager
    def _session(self, options: Options, operation: Operation) -> Iterator[Session]:
        endpoint = replace(self.kubeconfig.endpoint(), consent=never)
        try:
            session = Session(endpoint, options, operation, inventory_namespace=self.inventory_namespace)
        except InvalidRequest as error:
            raise click.UsageError(with_remedy(error)) from None
        try:
            with session:
                yield session
        except ConnectionFailed as error:
            raise ConnectionFailed(with_remedy(error)) from None

    @contextlib.contextmanager
    def _operating(self, id: str, seconds: float, board: Board) -> Iterator[Operation]:
        """An operation that Ctrl-C ends; its errors say what stands, and how to go on."""
        operation = Operation(id, self.instance, seconds, progress=board.progress)
        try:
            with _interruptible(operation):
                yield operation
        except (DriverError, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) or operation.stop.is_set():
                echo("Interrupted", err=True)
                self._say_what_stands(board)
                raise click.exceptions.Exit(INTERRUPTED) from None
            if isinstance(error, NotReady):
                click.echo(f"Error: {redact(str(error))}", err=True)
                self._say_what_stands(board)
                raise click.exceptions.Exit(1) from None
            self._say_what_stands(board)
            raise

    def _say_what_stands(self, board: Board) -> None:
        if board.standing:
            command = f"k8s-cr run {shlex.quote(str(self.path))}"
            same = f"{command} --instance {self.named}" if self.named else command
            stands = counted(board.standing, "object")
            go_on = f"Go on with the same command, or remove it: {same} --down"
            echo(f"{stands} of instance {self.instance} on the cluster. {go_on}", err=True)


def _stated(board: Board) -> str:
    """`3 Ready, 1 Deleted`."""
    return ", ".join(f"{count} {state}" for state, count in sorted(board.counts().items())) or "it had no objects"


@contextlib.contextmanager
def _interruptible(operation: Operation) -> Iterator[None]:
    """The first Ctrl-C stops the operation, as others stop one; the second interrupts whatever runs."""

    def stop() -> None:
        operation.stop.set()
        # Not click's stream, which knows nothing of the table on the terminal
        sys.stderr.write("Stopping after the requests in flight; Ctrl-C again to leave at once\n")

    def interrupted(number: int, frame: FrameType | None) -> None:
        del number, frame
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)
        # The main thread may hold the event's lock, or that of standard error, at this moment
        threading.Thread(target=stop, daemon=True).start()

    pressed: list[bool] = []
    former = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
