# SPDX-License-Identifier: Apache-2.0
"""The whole bed: its parts side by side, one bed a host, and what is known about the one that runs.

A part's environment file in the state folder is written when the part is complete.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from builds.programs import build
from builds.progress import say, step

from . import apt, existing, kubernetes, machine, network, paths, preconditions, processes, virtualenv
from .kind import docker, node_image
from .kind.cluster import Kind
from .ledger import Ledger
from .openstack import kubernetes_node
from .release import NEWEST, OLDER

Environment = dict[str, str]


OWN, KIND = "own", "kind"
"""The bed's Kubernetes: a machine that kubeadm sets up, or a cluster that kind makes.

A minor version is such a machine with that version, and a path is the kubeconfig of another cluster.
"""
_CLUSTER, _TACKER = "BED_CLUSTER", "BED_TACKER"
TACKER = "TACKER"
"""The environment variable that names another version of Tacker than the one with which the tests run."""
_RUN = "-run"
"""The lock that a run holds while it has a bed of its own."""
ROOT = Path(__file__).resolve().parents[2]


def cluster_named(name: str) -> str:
    """What `up` takes, of what a user has given; ValueError if it is the path of no file."""
    if is_own(name) or name == KIND:
        return name
    kubeconfig = Path(name).expanduser().resolve()
    if not kubeconfig.is_file():
        raise ValueError(f"there is no file {kubeconfig}: give `{KIND}`, {', '.join(OLDER)} or the path of a kubeconfig")
    return str(kubeconfig)


def is_own(cluster: str) -> bool:
    """Whether it is a machine of the bed, of whichever version."""
    return cluster in ("", OWN, *OLDER)


def _checked(_context: click.Context, _option: click.Parameter, name: str) -> str:
    try:
        return cluster_named(name)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


CLUSTER_OPTION = click.option(
    "--cluster",
    default="",
    callback=_checked,
    metavar="kind|VERSION|KUBECONFIG",
    help=f"In place of the bed's own Kubernetes, or its version: {', '.join(OLDER)}.",
)


class BusyError(Exception):
    """Another run is at work on the bed, or the bed is up with another cluster."""


@contextmanager
def during_run(parts: list[str], cluster: str = "") -> Iterator[None]:
    """The parts are up, as `up` does it; a bed that was down before is down at the end.

    The next `up` removes one whose run was killed: it holds what the run was at work on.
    """
    with _alone():
        _remove_broken()
    if environments():
        up(parts, cluster)
        yield
        return
    with _lock(_RUN, "another run with a test bed of its own begins on this host"):
        up(parts, cluster, of_run=True)
        try:
            yield
        finally:
            down()


def up(parts: list[str], cluster: str = "", *, of_run: bool = False) -> None:
    """Start the parts that do not run yet, after removing a bed that is broken or was never completed.

    `cluster` is OWN, KIND, a minor version or the path of a kubeconfig; by default that of the bed which is up, else OWN.
    """
    preconditions.check()
    with _alone():
        _remove_broken()
        code = _code().read_text() if _code().exists() else str(ROOT)
        if code != str(ROOT):
            raise BusyError(f"the test bed is up with the code in {code}: `down` removes it")
        there = environments().get("kubernetes", {}).get(_CLUSTER)
        if there and cluster not in ("", there):
            raise BusyError(f"the test bed is up with the cluster `{there}`, not `{cluster}`: `down` removes it")
        _check_tacker(parts)
        wanted = {part: _part(part, cluster or OWN) for part in parts if part not in environments()}
        if not wanted:
            say("The bed is up.")
            return
        ledger = Ledger(paths.STATE)
        # Every child has the token, so that `undo` finds it even when this run is killed now.
        os.environ[processes.TOKEN] = ledger.token
        try:
            _unfinished().touch()
            _code().write_text(str(ROOT))
            if of_run:
                _of_run().touch()
            _start(ledger, wanted)
            _unfinished().unlink()
        except KeyboardInterrupt:
            _remove("Interrupted: removing what was started")
            raise
        except Exception:
            say(f"What was started is left for a look, with its logs in {paths.STATE}; `down` removes it.")
            raise


def _check_tacker(parts: list[str]) -> None:
    """BusyError for another version of Tacker than the bed can have, or has."""
    version = os.environ.get(TACKER, "")
    if version and version not in virtualenv.tackers():
        raise BusyError(f"{TACKER} is {version}, and the bed has a lock file for {', '.join(virtualenv.tackers())} only")
    there = environments().get("tacker", {}).get(_TACKER, version)
    if "tacker" in parts and version not in ("", there):
        raise BusyError(f"the test bed is up with {f'Tacker {there}' if there else 'its own Tacker'}: `down` removes it")


def down() -> None:
    """Remove everything that `up` made."""
    with _alone():
        if paths.STATE.exists():
            _remove("Removing the bed")
        else:
            say("The bed is down.")


def environments() -> dict[str, Environment]:
    """The complete parts, and the variables with which programs find each."""
    files = {part: _environment_file(part) for part in _PARTS}
    return {part: json.loads(file.read_text()) for part, file in files.items() if file.exists()}


def environment() -> Environment:
    """The variables of all complete parts."""
    return {name: value for variables in environments().values() for name, value in variables.items()}


def cluster() -> str:
    """OWN, KIND, a minor version or the path of a kubeconfig; OWN if no bed with Kubernetes is up."""
    return environments().get("kubernetes", {}).get(_CLUSTER, OWN)


def ended() -> list[str]:
    """Names of processes of the bed that should run and do not."""
    return Ledger(paths.STATE).ended() if paths.STATE.exists() else []


def _start(ledger: Ledger, parts: "dict[str, Part]") -> None:
    """The parts side by side, and what is compiled for them meanwhile: the first waits for it, the others need not."""
    with _side_by_side(ledger) as begin:
        for family in {family for part in parts.values() for family in part.families}:
            begin(build, family)
        apt.install(ledger, [package for part in parts.values() for package in part.packages])
        network.bridge(ledger)
        machine.allow_many(ledger)
        for name, part in parts.items():
            begin(_start_part, ledger, name, part)


def _start_part(ledger: Ledger, name: str, part: "Part") -> None:
    environment = part.start(ledger)
    ledger.file(_environment_file(name), json.dumps(environment))


@contextmanager
def _side_by_side(ledger: Ledger) -> Iterator[Callable[..., None]]:
    """Runs what is begun in threads, waits for all, and raises what the first has raised.

    After Ctrl-C, what they started is ended until none of them goes on.
    """
    with ThreadPoolExecutor() as pool:
        begun: list[Future[Any]] = []
        try:
            yield lambda *call: begun.append(pool.submit(*call))
            for future in begun:
                future.result()
        except KeyboardInterrupt:
            while not all(future.done() for future in begun):
                processes.stop(lambda: processes.with_token(ledger.token), patience=3)
            raise


def _start_kubernetes(ledger: Ledger, cluster: str = OWN) -> Environment:
    made = kubernetes.up(ledger, release=OLDER.get(cluster, NEWEST))
    network.lead(kubernetes.PODS, kubernetes.ADDRESS)
    return {"KUBECONFIG": str(made.kubeconfig), _CLUSTER: cluster}


def _start_kind(ledger: Ledger) -> Environment:
    daemon = docker.Docker.start(ledger, kubernetes.ADDRESS)
    node_image.give(daemon)
    made = Kind.create(daemon, ledger)
    return {"KUBECONFIG": str(made.kubeconfig), _CLUSTER: KIND}


def _start_existing(kubeconfig: Path, ledger: Ledger) -> Environment:
    existing.check(kubeconfig)
    return {"KUBECONFIG": str(kubeconfig), _CLUSTER: str(kubeconfig)}


def _start_tacker(ledger: Ledger) -> Environment:
    from . import tacker  # its clients take a second to import, which `down` and `env` need not wait for

    version = os.environ.get(TACKER, "")
    return {**tacker.up(ledger, version=version), _TACKER: version}


def _start_machines(ledger: Ledger) -> Environment:
    from . import nodes  # of the cloud's images, whose client takes a second to import

    nodes.prepare(ledger)
    return {}


def _start_openstack(ledger: Ledger) -> Environment:
    from .openstack import cloud

    return cloud.up(ledger)


class Part(NamedTuple):
    """What `start` needs that takes long to get: packages of Debian, and families of Go programs."""

    start: Callable[[Ledger], Environment]
    packages: tuple[str, ...]
    families: tuple[str, ...] = ()


_SHARED = ("mariadb-server", "rabbitmq-server", "iproute2")
_NETWORK = ("nftables", "haproxy")
_PARTS = {
    "kubernetes": Part(_start_kubernetes, kubernetes.PACKAGES, NEWEST.families),
    "tacker": Part(_start_tacker, _SHARED),
    "machines": Part(_start_machines, (*kubernetes.PACKAGES, "nftables"), NEWEST.families),
    "openstack": Part(_start_openstack, (*_SHARED, *kubernetes.PACKAGES, *_NETWORK), kubernetes_node.FAMILIES),
}
_KIND = Part(_start_kind, (*kubernetes.PACKAGES, *docker.PACKAGES), node_image.FAMILIES)
PARTS = tuple(_PARTS)
USUAL = ("kubernetes", "tacker")
"""What `up` starts by itself."""


def _part(name: str, cluster: str) -> Part:
    if name != "kubernetes" or cluster == OWN:
        return _PARTS[name]
    if cluster in OLDER:
        return Part(partial(_start_kubernetes, cluster=cluster), kubernetes.PACKAGES, OLDER[cluster].families)
    return _KIND if cluster == KIND else Part(partial(_start_existing, Path(cluster)), ())


def _environment_file(part: str) -> Path:
    return paths.STATE / f"{part}.json"


def _unfinished() -> Path:
    """There while a part is being started."""
    return paths.STATE / "unfinished"


def _code() -> Path:
    """Names the folder of the project from which the bed was started: Tacker runs the driver that is there."""
    return paths.STATE / "code"


def _of_run() -> Path:
    """There if the bed is to go when the run ends that has started it."""
    return paths.STATE / "run"


def _remove_broken() -> None:
    if _is_broken():
        _remove("Removing what an interrupted run has left")


def _is_broken() -> bool:
    if not paths.STATE.exists():
        return False
    return _unfinished().exists() or not environments() or bool(ended()) or (_of_run().exists() and _is_free(_RUN))


def _remove(why: str) -> None:
    with step(why):
        Ledger(paths.STATE).undo()


def _alone() -> AbstractContextManager[None]:
    return _lock("", "another `up` or `down` of the test bed is at work on this host")


@contextmanager
def _lock(name: str, otherwise: str) -> Iterator[None]:
    """An abstract socket is a lock that leaves no file and ends with its holder."""
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind(f"\0{paths.STATE}{name}")
        except OSError:
            raise BusyError(otherwise) from None
        yield


def _is_free(name: str) -> bool:
    try:
        with _lock(name, ""):
            return True
    except BusyError:
        return False
