# SPDX-License-Identifier: Apache-2.0
"""
The life of one VNF instance, from a seed: its package, its verbs, its workers, and the trouble they are in.

Each verb is what the driver does for it, through `Session`. A worker may crash, fail, or still run when the next one
begins; who asked for the verb retries, or has it rolled back. After some tries the trouble is over, and what was begun
must come to a good end. In the end the instance is terminated, in any case.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from greenlet import GreenletExit

from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.engine.reconcile import Prune
from k8s_cr_driver.errors import DriverError, NotOurs, Refused
from k8s_cr_driver.kube import connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.ownership.inventory_content import NOTHING, InventoryContent
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import errors
from tests.fake_api.cluster import DEFAULT_NAMESPACES
from tests.fake_api.hand import Hand
from tests.fake_api.objects import Object, copy
from tests.simulation import package, stand_ins
from tests.simulation.client import Client
from tests.simulation.controllers import Controllers
from tests.simulation.invariants import Invariants
from tests.simulation.ledger import NOBODY, Ledger
from tests.simulation.scheduler import Scheduler, activated
from tests.simulation.servers import Servers
from tests.simulation.users import Users
from tests.simulation.weather import Weather

KINDS = frozenset(
    {
        *("Namespace", "ConfigMap", "Secret", "Pod", "PersistentVolumeClaim", "Event"),
        *("Deployment", "ReplicaSet", "StatefulSet", "Job", "ClusterRole"),
        *("CustomResourceDefinition", "SelfSubjectRulesReview"),
    }
)
"""Built-in kinds of the simulated cluster; more would only make its discovery longer."""
OPERATION_SECONDS = 900.0
MOST_REQUESTS = 3000
"""Of one life; more would be an operation that goes round in circles."""
TRIES = 4
"""Tries of a verb after which the trouble ends."""


@dataclass
class Instance:
    """A VNF instance as Tacker knows it."""

    id: str
    home: str = "default"
    """The namespace of its inventory."""
    objects: list[Object] = field(default_factory=list)
    remembered: InventoryContent = NOTHING
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Verb:
    """`desired` is what there is afterwards; `do` is what the driver does with its session."""

    name: str
    desired: list[Object]
    do: Callable[[Session], None]
    prunes: bool = True


@dataclass
class Worker:
    """One run of one verb."""

    name: str
    verb: Verb
    end: stand_ins.Event = field(default_factory=stand_ins.Event)
    """Set when it is over, or has crashed."""
    is_over: bool = False
    error: BaseException | None = None
    record: InventoryContent = NOTHING


@dataclass(frozen=True)
class Outcome:
    """
    `trace` is all that happened, in order: (seconds, words). `objects` is the package of the instance in the end, and
    `applied` what the engine has applied of it, without what differs from life to life.
    """

    violations: list[str]
    trace: list[tuple[float, str]]
    requests: int
    workers: int
    objects: list[Object]
    applied: dict[str, Object]


class Life:
    def __init__(self, seed: str, features: frozenset[str]) -> None:
        self.scheduler = Scheduler(seed)
        self._random = random.Random(f"{seed} story")
        self.features = features
        self.ledger = Ledger(self.scheduler)
        self.weather = Weather(self.scheduler, features)
        self.servers = Servers(self.scheduler, self.ledger, self.weather)
        self.blue = Instance("blue")
        self.users = Users(self.servers, self.blue.id, features)
        self.invariants = Invariants(self.servers, self.users)
        self._begun: list[Worker] = []
        self._asked: dict[str, Worker] = {}
        """Of each instance the worker that was asked last, as Tacker's database knows."""
        self._is_over = False

    def run(self) -> Outcome:
        """From the instantiation to the termination."""
        return self._run(self._tell)

    def grow(self) -> Outcome:
        """Without the termination: `objects` is what the instance must have then."""
        return self._run(self._grow)

    def instantiate(self, objects: list[Object]) -> Outcome:
        """Nothing but that."""
        self.blue.objects = objects
        return self._run(self._begin)

    def _run(self, story: Callable[[], None]) -> Outcome:
        with activated(self.scheduler), stand_ins.patched(connection=(connection.Connection, Client)):
            Client.servers = self.servers
            self._prepare()
            self.scheduler.spawn(self.scheduler.process("tacker"), story)
            self.scheduler.run(lambda: self._is_over or self.servers.requests > MOST_REQUESTS)
        if self.servers.requests > MOST_REQUESTS:
            self.ledger.violated("requests without end")
        elif not self._is_over:
            self.ledger.violated("the story has come to a stand")
        found = self.ledger.violations, self.ledger.trace, self.servers.requests, len(self._begun)
        return Outcome(*found, self.blue.objects, self.invariants.applied(self.blue.id))

    def _prepare(self) -> None:
        hand = Hand(self.servers.cluster)
        self.servers.cluster.serve_only(KINDS)
        for name in (*DEFAULT_NAMESPACES, "team", "elsewhere"):
            self.servers.acting(NOBODY, lambda name=name: hand.put(package.namespace(name)))  # type: ignore[misc]
        Controllers(self.servers)

    def _tell(self) -> None:
        self.users.begin()
        blue, chance = self.blue, self._random
        has_widgets = chance.random() < 0.4
        if has_widgets:
            self.users.put(package.crd())
        blue.objects = package.first(chance, "blue", "shared", self.features, has_widgets=has_widgets)
        green = Instance("green", "elsewhere" if "guests" in self.features else "default")
        if self._perform(blue, self._instantiate(blue), self._undo(blue)):
            self._visit()
            if "neighbours" in self.features and chance.random() < 0.5:
                green.objects = package.neighbour(chance, blue.objects, is_guest="guests" in self.features)
                if not self._perform(green, self._instantiate(green), self._undo(green)):
                    green.objects = []
            while chance.random() < 0.5 and self._go_on():
                pass
            self._perform(blue, self._terminate(), None)
        self._settle()
        self.invariants.check_gone(blue.id)
        if green.objects:
            self._perform(green, self._terminate(), None)
            self._settle()
            self.invariants.check_gone(green.id)
        self._is_over = True

    def _grow(self) -> None:
        chance = self._random
        self.blue.objects = package.first(chance, "blue", "shared", self.features)
        goes_on = self._perform(self.blue, self._instantiate(self.blue), self._undo(self.blue))
        while goes_on and chance.random() < 0.7:
            goes_on = self._go_on()
        if not goes_on:
            self.blue.objects = []
        self._settle()
        self._is_over = True

    def _begin(self) -> None:
        self._perform(self.blue, self._instantiate(self.blue), None)
        self._settle()
        self._is_over = True

    def _visit(self) -> None:
        """Users have things beside the instance's, and in what it has made."""
        for feature, visitors in (("guests", package.guests), ("lookalikes", package.lookalikes)):
            for guest in visitors(self.blue.objects) if feature in self.features and self._random.random() < 0.5 else ():
                with contextlib.suppress(errors.ApiError, LookupError):  # where it would be may have gone already
                    self.users.put(guest)

    def _go_on(self) -> bool:
        """One more verb; False if the instance is to go now."""
        if self._random.random() < 0.3:
            return self._perform(self.blue, self._heal(self.blue), self._terminate())
        newer = package.second(self._random, self.blue.objects, "blue", self.features)
        if self._perform(self.blue, self._change(newer), self._change(self.blue.objects)):
            self.blue.objects = newer
        return True

    def _instantiate(self, instance: Instance) -> Verb:
        def do(session: Session) -> None:
            session.reconcile(session.place(copy(instance.objects)), prune=Prune(unlabeled=False), first=True)

        return Verb("instantiate", instance.objects, do)

    def _undo(self, instance: Instance) -> Verb:
        def do(session: Session) -> None:
            session.recover_inventory(copy(instance.objects))
            session.reconcile([], prune=Prune())

        return Verb("rollback of instantiate", [], do)

    def _change(self, objects: list[Object]) -> Verb:
        return Verb("change", objects, lambda session: session.reconcile(session.place(copy(objects)), prune=Prune()))

    def _heal(self, instance: Instance) -> Verb:
        def do(session: Session) -> None:
            session.reconcile(session.place(copy(instance.objects)), prune=None)

        return Verb("heal", instance.objects, do, prunes=False)

    def _terminate(self) -> Verb:
        return Verb("terminate", [], lambda session: session.reconcile([], prune=Prune()))

    def _perform(self, instance: Instance, verb: Verb, undo: Verb | None) -> bool:
        """Until it is done; False if it was rolled back instead."""
        wanted = verb
        for number in range(2 * TRIES):
            if number == TRIES:
                self.weather.calm()
                self.users.stop()
            worker = self._start(instance, wanted)
            is_overtaken = not self._await(worker, is_patient=number >= TRIES or "two workers" not in self.features)
            if worker.is_over and worker.error is None:
                instance.remembered = replace(worker.record, token="", operation="", resource_version="")
                if wanted.desired and not any(obj["kind"] == "StatefulSet" for obj in wanted.desired):
                    self.ledger.leave_claims(instance.id)
                self.ledger.forget_finished({package.named(manifest) for manifest in wanted.desired})
                self.invariants.check_completed(instance.id, wanted.name, wanted.desired, prunes=wanted.prunes)
                return wanted is verb
            if isinstance(worker.error, Refused):
                self.users.heed(worker.error, instance.id, wanted.desired)
                instance.options = Options(adopt_existing=isinstance(worker.error, NotOurs))
            if undo is not None and self._random.random() < (0.6 if is_overtaken else 0.3):
                wanted = undo
            self.scheduler.sleep(0.0 if is_overtaken else self._random.choice((0.0, 0.1, 3.0, 20.0)))
        self.ledger.violated(f"{wanted.name} fails for good: {worker.error!r:.300}")
        return wanted is verb

    def _await(self, worker: Worker, *, is_patient: bool) -> bool:
        """Until it is over, or dead; False if whoever asked for it had no more patience."""
        if is_patient or self._random.random() < 0.5:
            return worker.end.wait()
        while "early rollbacks" not in self.features and worker.name not in self.ledger.writers:
            if worker.end.wait(0.05):
                return True
        return worker.end.wait(self._random.expovariate(1.0))

    def _start(self, instance: Instance, verb: Verb) -> Worker:
        worker = Worker(f"{instance.id}'s worker {len(self._begun) + 1}", verb)
        process = self.scheduler.process(worker.name)
        process.at_crash = partial(self._ended, worker)
        self.scheduler.spawn(process, lambda: self._work(instance, worker))
        self._begun.append(worker)
        self._asked[instance.id] = worker
        return worker

    def _work(self, instance: Instance, worker: Worker) -> None:
        name = worker.name
        self.ledger.note(f"{name} begins to {worker.verb.name}")
        is_current = lambda: self._asked[instance.id] is worker  # noqa: E731
        operation = Operation(name, instance.id, self.scheduler.now + OPERATION_SECONDS, is_current=is_current)
        try:
            with Session(
                Endpoint(instance.id),
                instance.options,
                operation,
                inventory_namespace=instance.home,
                remembered=instance.remembered,
            ) as session:
                worker.verb.do(session)
                worker.record = session.inventory.content
        except GreenletExit:
            raise
        except DriverError as error:
            worker.error = error
        worker.is_over = True
        self._ended(worker)
        self.ledger.note(f"{name} ends: {type(worker.error).__name__} {str(worker.error).partition(chr(10))[0]}")

    def _ended(self, worker: Worker) -> None:
        self.ledger.ended[worker.name] = self.scheduler.now
        worker.end.set()

    def _settle(self) -> None:
        """Until nobody does anything any more."""
        self.users.stop()
        self.weather.calm()
        for worker in self._begun:
            worker.end.wait()
        self.scheduler.sleep(60.0)
