# SPDX-License-Identifier: Apache-2.0
"""What the functional tests stand on: the bed, Tacker's API, the cluster, and an empty world before and after each test.

Whatever is missing (root, a program, the bed) makes tests fail with its name; nothing is skipped.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint

from . import families, sample_onboarding, turns
from .client import ApiError, Body, Client
from .cluster import Cluster
from .engine import INVENTORIES, Engine
from .objects import Place, namespace
from .packages import Package
from .sample_onboarding import Sample
from .testbed import bed as testbed
from .testbed import paths, processes
from .testbed.kubernetes import Kubernetes
from .testbed.ledger import Ledger
from .testbed.preconditions import PreconditionError
from .testbed.tacker import CONDUCTORS, OWN_DRIVER, Conductor, onboarding
from .vim import connection_info, token
from .vnf import Vnf
from .whole_run import WholeRun

# Seconds; what a deletion leaves to the garbage collector goes later.
EMPTY_WITHIN = 20.0
OPERATOR_GUIDE = Path(__file__).parents[1] / "doc" / "source" / "operator"

MakeVnf = Callable[..., Vnf]
Onboard = Callable[[Package], str]
MakeEngine = Callable[..., Engine]
OnboardSamples = Callable[..., list[Sample]]
Shown = Callable[[], AbstractContextManager[None]]
Summary = Callable[[str], None]
Logged = Callable[[str], set[str]]
Use = Callable[[str], None]

_STARTED = pytest.StashKey[ExitStack]()
_RUN = pytest.StashKey[WholeRun]()
_FAULTS = pytest.StashKey[dict[str, list[str]]]()
_SUMMARY = "summary"
_REPORTED = {
    "ResourceWarning": ResourceWarning,
    "pytest.PytestUnraisableExceptionWarning": pytest.PytestUnraisableExceptionWarning,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    instead = "`kind`, a version or the path of a kubeconfig, in place of the bed's own Kubernetes"
    parser.addoption("--cluster", default="", type=testbed.cluster_named, help=instead)
    parser.addoption("--failovers", type=int, default=1, help="family node_clusters: how often each; of 3 the median is judged")
    parser.addoption("--every-fault", action="store_true", help="family faults: every fault at every request")
    parser.addoption("--every-project", action="store_true", help="family schema_check: the objects of every project")


def pytest_configure(config: pytest.Config) -> None:
    """Client libraries leave sockets open while the bed's servers are not up yet: reported, but no failure of a test.

    pytest has applied the configured filters before this hook; what is collected after the last test meets only those.
    """
    for name, category in _REPORTED.items():
        config.addinivalue_line("filterwarnings", f"default::{name}")
        warnings.simplefilter("default", category)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    turns.arrange(items)
    cluster = config.option.cluster or testbed.cluster()
    if not testbed.is_own(cluster):
        left_out = pytest.mark.skip(reason=f"handles the bed's own Kubernetes, and the cluster is {cluster}")
        for item in items:
            if "kubernetes" in {*getattr(item, "fixturenames", ()), *turns.alone_on(item)}:
                item.add_marker(left_out)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Starts what the chosen families need, in the process that the user has started, not in those that it starts."""
    config = session.config
    if hasattr(config, "workerinput") or config.option.collectonly or session.testsfailed:
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config.stash[_STARTED] = ExitStack()
    with _shown(config):
        needed = families.chosen(config.args, config.invocation_params.dir)
        try:
            config.stash[_STARTED].enter_context(families.started(needed, config.option.cluster))
        except (testbed.BusyError, PreconditionError) as error:
            pytest.exit(f"{error}.", returncode=pytest.ExitCode.USAGE_ERROR)
    config.stash[_RUN] = WholeRun()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """When no other process uses it any more; also after Ctrl-C. The run fails if something is wrong with all of it."""
    stash = session.config.stash
    if _RUN in stash:
        stash[_FAULTS] = stash[_RUN].faults()
        if any(stash[_FAULTS].values()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if started := stash.get(_STARTED, None):
        with _shown(session.config):
            started.close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Its fixtures, too, are made and removed in the test's turn; while programs are built, it is others' turn."""
    sample_onboarding.build(families.family_of(item.path).samples)
    with turns.turn(item):
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What is wrong with the whole run, and what tests have counted, whichever process they ran in."""
    for what, objects in config.stash.get(_FAULTS, {}).items():
        if objects:
            terminalreporter.section(what, red=True, bold=True)
            terminalreporter.write_line("\n".join(objects))
    reports = [one for found in terminalreporter.stats.values() for one in found if isinstance(one, pytest.TestReport)]
    for report in reports:
        for name, text in report.user_properties:
            if name == _SUMMARY and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid}: {text}")


@contextmanager
def _shown(config: pytest.Config) -> Iterator[None]:
    """Within it the person at the terminal sees what takes minutes, which pytest would keep to itself."""
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(flush=True)  # ends the line of dots
        yield


@pytest.fixture(scope="session")
def shown(request: pytest.FixtureRequest) -> Shown:
    return partial(_shown, request.config)


@pytest.fixture
def summary(record_property: Callable[[str, object], None]) -> Summary:
    """One line for the end of the run."""
    return partial(record_property, _SUMMARY)


@pytest.fixture(scope="session")
def bed() -> testbed.Environment:
    """The variables of the bed."""
    return testbed.environment()


@pytest.fixture(scope="session")
def ledger(bed: testbed.Environment) -> Ledger:
    return Ledger(paths.STATE)


@pytest.fixture(scope="session")
def kubernetes(ledger: Ledger) -> Kubernetes:
    return Kubernetes(ledger)


@pytest.fixture(scope="session")
def vim(bed: testbed.Environment) -> Body:
    """A VimConnectionInfo with all permissions."""
    return connection_info(Path(bed["KUBECONFIG"]))


@pytest.fixture
def vim_with(cluster: Cluster, vim: Body, request: pytest.FixtureRequest) -> Iterator[Body]:
    """The VIM with the account and the permissions of a file of the operator guide, and no others."""
    manifests = list(yaml.safe_load_all((OPERATOR_GUIDE / request.param).read_text()))
    with cluster.holding(*manifests):
        account = manifests[0]["metadata"]
        yield {**vim, "accessInfo": {"bearer_token": token(cluster.api, account["name"], account["namespace"])}}


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


@pytest.fixture(scope="session")
def logged(ledger: Ledger) -> Logged:
    """The names of the conductors that have logged a text since the bed is up."""
    logs = {name: Conductor(ledger, name).log for name in CONDUCTORS}
    return lambda text: {name for name, log in logs.items() if text in log.read_text()}


@pytest.fixture
def conductors(request: pytest.FixtureRequest, ledger: Ledger) -> Iterator[dict[str, Conductor]]:
    """Both, by name, to be killed and started; those that a test leaves dead are started again."""
    assert "tacker" in turns.alone_on(request.node), 'a test that handles conductors is marked alone("tacker")'
    found = {name: Conductor(ledger, name) for name in CONDUCTORS}
    yield found
    for name in ledger.ended():
        found[name].start()


@pytest.fixture
def use(conductors: dict[str, Conductor]) -> Iterator[Use]:
    """Has both conductors work with a driver, as an operator does who names it in tacker.conf; ours at the end."""
    current = OWN_DRIVER

    def restart(driver: str) -> None:
        nonlocal current
        current = driver
        for conductor in conductors.values():
            conductor.kill()
            conductor.launch(driver)
        for conductor in conductors.values():
            conductor.wait()

    yield restart
    if current != OWN_DRIVER:
        restart(OWN_DRIVER)


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
            sample_onboarding.load(kubernetes, names)
            found = sample_onboarding.onboard(tacker, names)
        onboarded.extend(found.values())
        return [found[name] for name in names]

    yield make
    for sample in onboarded:
        tacker.delete_package(sample.package_id)


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Place | None]:
    """The module's PLACE with its Namespace; None if the module has none, and works in `default` to itself."""
    place: Place | None = getattr(request.module, "PLACE", None)
    if place is None:
        yield None
        return
    with cluster.holding(namespace(place.name)):
        for kind, name in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):
            assert processes.until(partial(cluster.get, kind, name, place.name), EMPTY_WITHIN), f"{place.name} has no {name}"
        yield place


@pytest.fixture
def make_vnf(
    request: pytest.FixtureRequest, tacker: Client, vim: Body, cluster: Cluster, place: Place | None
) -> Iterator[MakeVnf]:
    """Makes VNF instances of a VNFD, the module's if none is given; the last is removed first, however the test ends.

    A test that has passed must leave nothing on the cluster by then, and one that has failed nothing for the next.
    """
    made: list[Vnf] = []

    def make(vnfd_id: str = "") -> Vnf:
        made.append(Vnf.create(tacker, vim, vnfd_id or request.getfixturevalue("package"), place))
        return made[-1]

    yield make
    problems = [problem for vnf in reversed(made) if (problem := _removed(vnf))]
    ids = [vnf.id for vnf in made]
    if not processes.until(lambda: not cluster.leftovers(ids), EMPTY_WITHIN):
        problems.append(f"left on the cluster: {', '.join(cluster.leftovers(ids))}")
        cluster.wipe(ids)
    assert not problems, "\n".join(problems)


def _removed(vnf: Vnf) -> str:
    """Why the instance could not be removed; empty if it is removed."""
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
def make_engine(endpoint: Endpoint, cluster: Cluster, place: Place | None) -> Iterator[MakeEngine]:
    """Makes VNF instances without Tacker, with a login and a namespace of the inventory as given.

    They are removed in the end by one that has all permissions.
    """
    made: list[Engine] = []

    def make(login: Endpoint, inventories: str = INVENTORIES) -> Engine:
        made.append(Engine(login, place.name if place else "default", inventories))
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
