"""What the functional tests stand on: the bed, Tacker's API, the cluster, and an empty world before and after each test.

Whatever is missing (root, a program, the bed) makes tests fail with its name; nothing is skipped.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest

from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint

from . import samples
from .client import ApiError, Body, Client
from .cluster import Cluster
from .engine import Engine
from .packages import Package
from .samples import Sample
from .testbed import bed as testbed
from .testbed import paths, processes
from .testbed.kubernetes import Kubernetes
from .testbed.ledger import Ledger
from .testbed.tacker import CONDUCTORS, Conductor, onboarding
from .vim import connection_info
from .vnf import Vnf

# Seconds; what a deletion leaves to the garbage collector goes later.
EMPTY_WITHIN = 20.0

MakeVnf = Callable[..., Vnf]
Onboard = Callable[[Package], str]
MakeEngine = Callable[[Endpoint], Engine]
OnboardSamples = Callable[..., list[Sample]]
Shown = Callable[[], AbstractContextManager[None]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-fault", action="store_true", help="test_faults: every fault at every request")


def pytest_configure(config: pytest.Config) -> None:
    """Client libraries leave sockets open while the bed's servers are not up yet: told, but no failure of a test."""
    for warning in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
        config.addinivalue_line("filterwarnings", f"default::{warning}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs programs that take minutes to build comes late, and what looks for secrets in all logs comes last."""
    items.sort(key=lambda item: (item.path.name == "test_canaries.py", _needs_samples(item)))


def _needs_samples(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "onboard_samples" in item.fixturenames


@pytest.fixture(scope="session")
def shown(request: pytest.FixtureRequest) -> Shown:
    """Within it the person at the terminal sees what takes minutes, which pytest would keep to itself."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    @contextmanager
    def shown() -> Iterator[None]:
        with capture.global_and_fixture_disabled():
            print(flush=True)  # ends the line of dots
            yield

    return shown


@pytest.fixture(scope="session")
def bed(request: pytest.FixtureRequest, shown: Shown) -> Iterator[testbed.Environment]:
    """The variables of a bed that is up; one that was not up before is removed at the end, also after Ctrl-C.

    What is to be built of the samples is built during the tests before them, which wait more than they work.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    was_up = bool(testbed.environments())
    with shown():
        testbed.up(list(testbed.PARTS))
    building = samples.building() if any(map(_needs_samples, request.session.items)) else nullcontext()
    try:
        with building:
            yield {name: value for part in testbed.environments().values() for name, value in part.items()}
    finally:
        if not was_up:
            with shown():
                testbed.down()


@pytest.fixture(scope="session")
def ledger(bed: testbed.Environment) -> Ledger:
    return Ledger(paths.STATE)


@pytest.fixture(scope="session")
def kubernetes(ledger: Ledger) -> Kubernetes:
    return Kubernetes(ledger)


@pytest.fixture(scope="session")
def vim(bed: testbed.Environment) -> Body:
    """A VimConnectionInfo with all rights."""
    return connection_info(Path(bed["KUBECONFIG"]))


@pytest.fixture(scope="session")
def endpoint(vim: Body) -> Endpoint:
    """The same as the driver has it."""
    return vim_endpoint(vim["interfaceInfo"], vim["accessInfo"])


@pytest.fixture(scope="session")
def tacker(bed: testbed.Environment, ledger: Ledger) -> Client:
    return Client({**os.environ, **bed}, partial(onboarding, ledger))


@pytest.fixture(scope="session")
def cluster(bed: testbed.Environment) -> Iterator[Cluster]:
    cluster = Cluster(Path(bed["KUBECONFIG"]))
    yield cluster
    cluster.close()


@pytest.fixture
def conductors(ledger: Ledger) -> Iterator[dict[str, Conductor]]:
    """Both, by name; those that a test leaves dead are started again."""
    found = {name: Conductor(ledger, name) for name in CONDUCTORS}
    yield found
    for name in ledger.ended():
        found[name].start()


@pytest.fixture(scope="module")
def onboard(tacker: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Onboard]:
    """Onboards packages for the module's tests; the VNFD id of each."""
    made: list[str] = []

    def onboard(described: Package) -> str:
        info = tacker.onboard(described.make(tmp_path_factory.mktemp("package") / "package.csar"))
        made.append(info["id"])
        return str(info["vnfdId"])

    yield onboard
    for package_id in made:
        tacker.delete_package(package_id)


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest, onboard: Onboard) -> str:
    """The VNFD id of the module's PACKAGE, onboarded."""
    return onboard(request.module.PACKAGE)


@pytest.fixture(scope="module")
def onboard_samples(tacker: Client, kubernetes: Kubernetes, shown: Shown) -> Iterator[OnboardSamples]:
    """Makes and onboards sample packages by their names, and loads the images that they want."""
    onboarded: list[Sample] = []

    def make(*names: str) -> list[Sample]:
        with shown():
            samples.load(kubernetes, names)
            found = samples.onboard(tacker, names)
        onboarded.extend(found.values())
        return [found[name] for name in names]

    yield make
    for sample in onboarded:
        tacker.delete_package(sample.package_id)


@pytest.fixture
def make_vnf(request: pytest.FixtureRequest, tacker: Client, vim: Body, cluster: Cluster) -> Iterator[MakeVnf]:
    """Makes VNF instances of a VNFD, the module's if none is given; the last is removed first, however the test ends.

    A test that has passed must leave nothing on the cluster by then, and one that has failed nothing for the next.
    """
    made: list[Vnf] = []

    def make(vnfd_id: str = "") -> Vnf:
        made.append(Vnf.create(tacker, vim, vnfd_id or request.getfixturevalue("package")))
        return made[-1]

    yield make
    problems = [problem for vnf in reversed(made) if (problem := _removed(vnf))]
    ids = [vnf.id for vnf in made]
    if not processes.until(lambda: not cluster.leftovers(ids), EMPTY_WITHIN):
        problems.append(f"left on the cluster: {', '.join(cluster.leftovers(ids))}")
        cluster.wipe(ids)
    assert not problems, "\n".join(problems)


def _removed(vnf: Vnf) -> str:
    """Why the instance could not be removed; empty if it is gone."""
    try:
        vnf.remove()
    except ApiError as error:
        return "" if error.status == 404 else str(error)
    except Exception as error:
        return f"VNF instance {vnf.id}: {error}"
    return ""


@pytest.fixture
def vnf(make_vnf: MakeVnf) -> Vnf:
    return make_vnf()


@pytest.fixture
def make_engine(endpoint: Endpoint, cluster: Cluster) -> Iterator[MakeEngine]:
    """Makes VNF instances without Tacker, that log in as they are told; removed in the end by one that has all rights."""
    made: list[Engine] = []

    def make(login: Endpoint) -> Engine:
        made.append(Engine(login))
        return made[-1]

    yield make
    for engine in made:
        engine.endpoint = endpoint
        engine.terminate()
    ids = [engine.id for engine in made]
    left = cluster.leftovers(ids)
    cluster.wipe(ids)
    assert left == []


@pytest.fixture
def engine(make_engine: MakeEngine, endpoint: Endpoint) -> Engine:
    return make_engine(endpoint)
