# SPDX-License-Identifier: Apache-2.0
"""A real Tacker: API server and two conductors, with the services that they need, set up as operators do.

The conductors run as on two hosts: with names, locks and copies of the VNF packages of their own. Each is started,
killed and started again by itself, also by a program that has not started the bed: everything that this takes lies in
the state folder.
"""

import fcntl
import os
import signal
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import requests

from builds.commands import run
from builds.progress import step

from . import config, keystone, mariadb, paths, processes, rabbitmq, shared, virtualenv
from .ledger import Ledger, Process

OWN_DRIVER = "kubernetes_cr"
TACKERS_DRIVER = "kubernetes"
CONDUCTORS = ("conductor-1", "conductor-2")
# Seconds: until a conductor that is given an upload has begun on a busy host, and until it has ended.
TURN, PROCESSING = 3.0, 60.0

_OWN = Path(sysconfig.get_path("scripts"))


def up(ledger: Ledger, driver: str = OWN_DRIVER, version: str = "") -> dict[str, str]:
    """Start everything; the environment of a shell in which `openstack vnflcm ...` works.

    `driver` is the entry point that takes the place of Tacker's own Kubernetes driver, or TACKERS_DRIVER itself, and
    `version` one of `virtualenv.tackers()`, by default what the tests run with.
    """
    scripts = virtualenv.with_tacker(version) / "bin" if version else _OWN
    ledger.folder(ledger.home / "tacker", 0o700)
    ledger.file(_scripts_file(ledger), str(scripts))
    with ThreadPoolExecutor() as pool:
        broker_starts = pool.submit(shared.broker, ledger)
        schema_made = pool.submit(_make_schema, scripts, shared.database(ledger))
        identity = shared.identity(ledger)
        endpoint = _configure(ledger, driver, broker_starts.result(), schema_made.result(), identity)
    with step("Starting Tacker with two conductors"):
        conductors = [Conductor(ledger, name) for name in CONDUCTORS]
        for conductor in conductors:
            conductor.launch()
        _start_server(ledger, endpoint)
        for conductor in conductors:
            conductor.wait()
    return identity.environment() | {"TACKER_CONFIG_DIR": str(config_folder(ledger))}


class Conductor:
    """One of the running bed's conductors, by name (see CONDUCTORS)."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.name = name
        self._ledger = ledger

    def start(self, driver: str | None = None, options: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start it, with another driver than the bed's if one is named, and wait until it takes operations.

        `options` go before tacker.conf: variables as oslo.config reads them, OS_<GROUP>__<OPTION>.
        """
        self.launch(driver, options)
        self.wait()

    def launch(self, driver: str | None = None, options: Mapping[str, str] = MappingProxyType({})) -> None:
        """As `start`, without waiting."""
        environment = _environment(self._home) | {
            "OS_DEFAULT__HOST": self.name,
            "OS_VNF_PACKAGE__VNF_PACKAGE_CSAR_PATH": str(self._packages),
            # A file: scripts of packages log where it does, and their standard error is read by it.
            "OS_DEFAULT__LOG_FILE": str(self._ledger.home / "logs" / f"{self.name}.log"),
            # Its process title would overwrite the environment, by which its worker is found.
            "SPT_NOENV": "1",
        }
        if driver:
            environment |= {"OS_TACKER__INFRA_DRIVER": driver, "OS_TACKER__VNFLCM_INFRA_DRIVER": driver}
        files = ["--config-file", config_file(self._ledger), "--config-dir", config_folder(self._ledger)]
        argv: list[str | Path] = [_scripts(self._ledger) / "tacker-conductor", *files]
        self._ledger.spawn(self.name, argv, env=environment | options)

    def wait(self) -> None:
        """Until it listens for LCM operations of API v2, the last thing that it does when it starts."""
        self._process.wait_until(self._listens, 120, f"{self.name} to take operations")

    def kill(self) -> None:
        """End it and its worker with SIGKILL, in the middle of whatever they do; no operation reaches it then."""
        token = f"{self._ledger.token}/{self.name}"
        processes.stop(lambda: processes.with_token(token), signal.SIGKILL)
        if not processes.until(lambda: not self._listens(), 10):
            raise TimeoutError(f"RabbitMQ still takes {self.name} for alive 10 s after its end")

    def pause(self) -> None:
        """It stands still until `resume`."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        for process in processes.with_token(f"{self._ledger.token}/{self.name}"):
            processes.send(process, number)

    def packages(self) -> set[str]:
        """What lies in its folder of VNF packages."""
        return {path.name for path in self._packages.iterdir()}

    def unpacked(self, packages: set[str]) -> dict[str, int]:
        """The files of these packages that it has by now, with their sizes."""
        files = [path for name in packages for path in (self._packages / name, *(self._packages / name).rglob("*"))]
        return {str(path.relative_to(self._packages)): path.stat().st_size for path in files if path.is_file()}

    @property
    def _packages(self) -> Path:
        return self._home / "vnf-packages"

    def works_on(self, instance_id: str) -> bool:
        """Does it hold the lock of the VNF instance, as it does during every operation?"""
        with (self._home / "locks" / f"tacker-{instance_id}").open("ab") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    @property
    def log(self) -> Path:
        """Its log since the bed is up, over all its starts."""
        return self._process.log

    @property
    def _process(self) -> Process:
        return self._ledger.process(self.name)

    @property
    def _home(self) -> Path:
        return config_file(self._ledger).parent / self.name

    def _listens(self) -> bool:
        settings = ConfigParser(interpolation=None)
        settings.read(config_file(self._ledger))
        broker = rabbitmq.Broker(settings["DEFAULT"]["transport_url"])
        return broker.consumers(f"TACKER_CONDUCTOR_V2.{self.name}") > 0


def worker(conductors: Mapping[str, Conductor], instance_id: str) -> Conductor:
    """The conductor that works on a VNF instance; TimeoutError if none does within 10 s."""
    found = processes.until(lambda: [one for one in conductors.values() if one.works_on(instance_id)], 10)
    if not found:
        raise TimeoutError(f"no conductor works on VNF instance {instance_id}")
    return found[0]


@contextmanager
def onboarding(ledger: Ledger, state: Callable[[], str]) -> Iterator[None]:
    """For the time of an upload one conductor rests; returns when both have unpacked the package, whose `state` this is.

    Each counts itself in and out in the column `downloading`, and the last one stores the VNFD (Tacker 16,
    `Conductor.load_csar_data`). Of two at once both may take themselves for the last, or neither: the package fails and
    its VNFD id can never be used again, or it stays PROCESSING for ever.
    """
    first, second = conductors = [Conductor(ledger, name) for name in CONDUCTORS]
    with _one_at_a_time(ledger):
        before = first.packages() | second.packages()
        done = threading.Event()
        try:
            second.pause()  # before anything is uploaded: it takes a while to find its processes
            with ThreadPoolExecutor(1) as pool:
                turns = pool.submit(_take_turns, conductors, state, done)
                try:
                    yield
                finally:
                    done.set()
                turns.result()
        finally:
            for conductor in conductors:
                conductor.resume()
        new = (first.packages() | second.packages()) - before
        if not processes.until(lambda: second.unpacked(new) == first.unpacked(new), 120):
            raise TimeoutError("the conductors have not both unpacked a VNF package within 120 s")


@contextmanager
def _one_at_a_time(ledger: Ledger) -> Iterator[None]:
    with (ledger.home / "onboarding.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _take_turns(conductors: list[Conductor], state: Callable[[], str], done: threading.Event) -> None:
    """RabbitMQ gives the upload to one of them: the turn passes on until that one works, which then ends alone."""
    working, resting = conductors
    while not done.wait(TURN):
        if state() == "PROCESSING" and done.wait(PROCESSING):
            break
        working.pause()
        if state() != "PROCESSING":  # else it has begun meanwhile
            working, resting = resting, working
        working.resume()


def config_file(ledger: Ledger) -> Path:
    """tacker.conf of the running bed."""
    return ledger.home / "tacker" / "tacker.conf"


def config_folder(ledger: Ledger) -> Path:
    """Of further files of options of the conductors, which scripts of packages read, too."""
    return config_file(ledger).parent / "tacker.conf.d"


def _scripts_file(ledger: Ledger) -> Path:
    return config_file(ledger).parent / "scripts"


def _scripts(ledger: Ledger) -> Path:
    """The folder of the running Tacker's programs."""
    return Path(_scripts_file(ledger).read_text())


def _environment(home: Path) -> dict[str, str]:
    """Of a process that is as on a host of its own. Tacker leaves unpacked packages in the folder of temporary files."""
    return os.environ | {
        "TMPDIR": f"{home}/tmp",
        "OS_COORDINATION__BACKEND_URL": f"file://{home}/locks",
        "PYTHONPATH": str(paths.PROJECT),  # of the key manager
    }


def _make_schema(scripts: Path, database: mariadb.Server) -> str:
    """Tacker's tables; the URL of their data base."""
    url = database.create("tacker")
    with step("Making Tacker's tables"):
        run([scripts / "tacker-db-manage", "upgrade", "head"], env=os.environ | {"OS_DATABASE__CONNECTION": url})
    return url


def _configure(ledger: Ledger, driver: str, broker: rabbitmq.Broker, database: str, identity: keystone.Identity) -> str:
    """Write tacker.conf, and enter Tacker into the catalog; the URL of Tacker's API."""
    folder = config_file(ledger).parent
    (folder / "vim-keys").mkdir(0o700)
    config_folder(ledger).mkdir(0o700)
    (folder / "tacker-server" / "tmp").mkdir(parents=True)
    for name in CONDUCTORS:
        (folder / name / "tmp").mkdir(parents=True)
        (folder / name / "vnf-packages").mkdir()
    [port] = config.free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    service = identity.add_service("tacker", endpoint, "nfv-orchestration")
    paste = _scripts(ledger).parent / "etc" / "tacker" / "api-paste.ini"
    text = config.render(
        "tacker.conf", folder=folder, port=port, endpoint=endpoint, paste=paste, driver=driver,
        conductor=CONDUCTORS[0], broker=broker.url, database=database, keystone=identity.url,
        username=service.username, password=service.password, project=service.project,
    )  # fmt: skip
    ledger.file(config_file(ledger), text)
    return endpoint


def _start_server(ledger: Ledger, endpoint: str) -> None:
    def answers() -> bool:
        try:
            return requests.get(endpoint, timeout=5).ok
        except requests.RequestException:
            return False

    settings = config_file(ledger)
    environment = _environment(settings.parent / "tacker-server")
    argv: list[str | Path] = [_scripts(ledger) / "tacker-server", "--config-file", settings]
    process = ledger.spawn("tacker-server", argv, env=environment)
    process.wait_until(answers, 120, "Tacker's API to answer")
