# SPDX-License-Identifier: Apache-2.0
"""Many lives, each with one fault at one index of the requests of every verb; what has come of it is counted.

A verb that has met the fault must reach its state all the same, or end with a clear error. Then its rollback must reach
the state before it and, after the same fault once more, a retry the state that the verb reaches without faults.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection as Pipe

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.endpoint import Endpoint

from ..proxy import Among, Proxy, Upstream
from ..testbed.processes import until
from .injections import SIGKILL, Injection, killing
from .life import VERBS, Instance, Step, lead, remove
from .state import Observer, State

# At once; most of a life is waiting, that of a killed process for the writes that its token still allows.
LIVES, KILLED_LIVES = 8, 24
# Seconds: of a run, of one that is to end by its deadline, and until controllers are done with what a run has left them.
# The controller of Namespaces needs minutes on a loaded machine, because many lives end at once.
PATIENCE, DEADLINE, SETTLING = 300.0, 8.0, 20.0
# A run may send some requests more than the one without faults has, as when it waits longer.
MORE = 3

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])


@dataclass
class Tally:
    """Counts of the indexes at which a fault has struck, by verb and by fault, and of what followed.

    The lists say what was wrong in the end; `instances` has the ids of all.
    """

    struck: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    unharmed: int = 0
    rolled_back: int = 0
    retried: int = 0
    orphans: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    instances: list[str] = field(default_factory=list)

    def __iadd__(self, other: Tally) -> Tally:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    @property
    def problems(self) -> list[str]:
        return self.orphans + self.doubled + self.different

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in self.faults.items())
        verbs = ", ".join(f"{verb} {self.struck[verb]}" for verb in VERBS)
        return (
            f"{faults}; {verbs}: {self.unharmed} unharmed, {self.rolled_back} rolled back, "
            f"{self.retried} retried; {len(self.orphans)} orphans, {len(self.doubled)} doubled, {len(self.different)} different"
        )


@dataclass(frozen=True)
class Cluster:
    """Where lives are led: with this login, past this upstream, before these eyes."""

    endpoint: Endpoint
    upstream: Upstream
    observer: Observer

    @classmethod
    def of(cls, endpoint: Endpoint) -> Cluster:
        upstream = Upstream(endpoint.url, endpoint.ca)
        return cls(endpoint, upstream, Observer(upstream, endpoint.authorization))


@dataclass(frozen=True)
class Reference:
    """A life without faults: the state after each verb, and the lines of its requests."""

    states: dict[str, State]
    requests: dict[str, list[str]]

    def indexes(self, among: Among) -> int:
        """How many indexes there are in the verb with most of them."""
        return MORE + max(sum(map(among, lines)) for lines in self.requests.values())


def reference(cluster: Cluster, pods: int) -> Reference:
    """Leads a life without faults."""
    instance, states, requests = Instance.new(pods), {}, {}
    for verb, steps in VERBS.items():
        instance = replace(instance, chosen=cluster.observer.pods(instance))
        with Proxy(cluster.upstream) as proxy:
            error = _Run(cluster, instance, steps.do, proxy).end()
        assert not error, f"{verb} without any fault: {error}"
        states[verb], requests[verb] = cluster.observer.state(instance), proxy.requests
    return Reference(states, requests)


def campaign(cluster: Cluster, expected: Reference, injections: Sequence[Injection], pods: int) -> Tally:
    """Leads a life for each index, with the injections in turn; none is begun after a problem, which each verb waits for."""

    def life(index: int) -> Tally:
        if tally.problems:
            return Tally()
        return _life(cluster, expected, injections[index % len(injections)], index, pods)

    tally = Tally()
    with ThreadPoolExecutor(KILLED_LIVES if injections == [SIGKILL] else LIVES) as pool:
        for one in pool.map(life, range(expected.indexes(injections[0].among))):
            tally += one
    return tally


def _life(cluster: Cluster, expected: Reference, injection: Injection, index: int, pods: int) -> Tally:
    instance, tally, before = Instance.new(pods), Tally(), State()
    tally.instances.append(instance.id)
    try:
        for verb, after in expected.states.items():
            instance = replace(instance, chosen=cluster.observer.pods(instance))
            _Trial(cluster, instance, injection, index, tally, verb).run(before, after)
            before = after
    finally:
        if cluster.observer.state(instance):  # after a problem
            with Proxy(cluster.upstream) as proxy:
                _Run(cluster, instance, remove, proxy).end()
    return tally


@dataclass(frozen=True)
class _Trial:
    """One verb of one life."""

    cluster: Cluster
    instance: Instance
    injection: Injection
    index: int
    tally: Tally
    verb: str

    def run(self, before: State, after: State) -> None:
        steps = VERBS[self.verb]
        error, has_struck = self._meet_the_fault(steps.do)
        self.tally.struck[self.verb] += has_struck
        self.tally.faults[self.injection.name] += has_struck
        self.tally.unharmed += has_struck and not error
        if error and steps.undo:
            self._must(steps.undo)
            self._compare(before, "rollback")
            self.tally.rolled_back += 1
            error, _ = self._meet_the_fault(steps.do)
        if error:
            self._must(steps.do)
            self.tally.retried += 1
        self._compare(after, "verb")

    def _meet_the_fault(self, step: Step) -> tuple[str, bool]:
        """The error of the step, and whether any of its requests has met the fault."""
        injection = self.injection
        with Proxy(self.cluster.upstream) as proxy:
            run = _Run(self.cluster, self.instance, step, proxy, DEADLINE if injection.silent else PATIENCE)
            proxy.strike(injection.fault or killing(run.kill), self.index, injection.among)
            error = run.end()
        # The short deadline of a silent fault may end a run that is only slow: a namespace is deleted in two rounds.
        if error and not proxy.has_struck and not injection.silent:
            self.tally.different.append(f"{self._where} failed before it: {error}")
        return error, proxy.has_struck

    def _must(self, step: Step) -> None:
        with Proxy(self.cluster.upstream) as proxy:
            error = _Run(self.cluster, self.instance, step, proxy).end()
        if error:
            self.tally.different.append(f"{step.__name__} after {self._where} failed: {error}")

    def _compare(self, expected: State, what: str) -> None:
        state = self.cluster.observer.state
        if until(lambda: state(self.instance) == expected, SETTLING, pause=0.2):
            return
        found = state(self.instance)
        for name in found.keys() - expected.keys():
            (self.tally.doubled if "#" in name else self.tally.orphans).append(f"{name} after the {what} of {self._where}")
        for name, wanted in expected.items():
            if found.get(name) != wanted:
                self.tally.different.append(f"{name} after the {what} of {self._where}: {found.get(name)}, not {wanted}")

    @property
    def _where(self) -> str:
        return f"{self.verb} with {self.injection.name} at {self.index} ({self.instance.name})"


class _Run:
    """A step in a process of its own."""

    def __init__(self, cluster: Cluster, instance: Instance, step: Step, proxy: Proxy, seconds: float = PATIENCE) -> None:
        self._step, self._killed = step, False
        self._received, self._sending = _PROCESSES.Pipe(duplex=False)
        endpoint = replace(cluster.endpoint, url=proxy.url, ca="")
        self._process = _PROCESSES.Process(target=_lead, args=(self._sending, endpoint, instance, step, seconds))

    def kill(self) -> None:
        self._killed = True
        self._process.kill()

    def end(self) -> str:
        """Runs it to its end; its error, "" if there is none."""
        self._process.start()
        self._sending.close()
        with self._received:
            try:
                return str(self._received.recv())
            except EOFError:
                assert self._killed, f"{self._step.__name__} has ended without a word"
                return "killed"
            finally:
                self._process.join()
                self._process.close()


def _lead(sending: Pipe, endpoint: Endpoint, instance: Instance, step: Step, seconds: float) -> None:
    """In the process."""
    try:
        lead(endpoint, instance, step, seconds)
    except DriverError as error:
        assert str(error), f"a {type(error).__name__} without a word"
        sending.send(f"{type(error).__name__}: {error}")
    else:
        sending.send("")
