# SPDX-License-Identifier: Apache-2.0
"""The life of a small VNF instance on the engine itself: the verbs as Tacker's conductor has the driver do them.

Each verb is a function of (session, instance), so that it can be run in a process of its own, and be killed there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import counts
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session

from ..objects import Object, config_map, deployment, make, namespace

INVENTORIES = "default"
SCALED = 2


@dataclass(frozen=True)
class Instance:
    """One VNF instance; everything that it has bears its `name`, eight hexadecimal digits.

    `pods` are those of its Deployment, `chosen` the names of those that a heal replaces.
    """

    name: str
    pods: int = 0
    chosen: frozenset[str] = frozenset()

    @classmethod
    def new(cls, pods: int = 0) -> Instance:
        return cls(uuid.uuid4().hex[:8], pods)

    @property
    def id(self) -> str:
        return f"{self.name}-0000-4000-8000-000000000000"

    @property
    def namespace(self) -> str:
        return f"faults-{self.name}"

    @property
    def group(self) -> str:
        """Of its own kind Gauge."""
        return f"g{self.name}.example.com"

    def package(self) -> list[Object]:
        where = self.namespace
        return [
            namespace(where),
            self._crd(),
            self.gauge(),
            self._gauge("spare"),
            config_map("config", where, a="1"),
            make("v1", "Secret", "key", where, stringData={"key": "first"}),
            make("v1", "Service", "web", where, spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
            self.web(),
        ]

    def next_package(self) -> list[Object]:
        """Adds a ConfigMap, updates three objects, prunes a Gauge."""
        where = self.namespace
        changed = {
            ("ConfigMap", "config"): config_map("config", where, b="2"),
            ("ConfigMap", "extra"): config_map("extra", where, a="1"),
            ("Secret", "key"): make("v1", "Secret", "key", where, stringData={"key": "second"}),
            ("Gauge", "main"): {**self.gauge(), "spec": {"replicas": 1, "unit": "bar"}},
        }
        kept = {(one["kind"], one["metadata"]["name"]): one for one in self.package()}
        kept.pop(("Gauge", "spare"))
        return list({**kept, **changed}.values())

    def web(self) -> Object:
        """A VDU whose VNFCs are pods."""
        return deployment("web", self.pods, namespace=self.namespace)

    def gauge(self) -> Object:
        """A VDU without children, scaled by the subresource of its kind."""
        return self._gauge("main")

    def _gauge(self, name: str) -> Object:
        return make(f"{self.group}/v1", "Gauge", name, self.namespace, spec={"replicas": 1, "unit": "psi"})

    def _crd(self) -> Object:
        spec = {"type": "object", "properties": {"replicas": {"type": "integer"}, "unit": {"type": "string"}}}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
        }
        names = {"kind": "Gauge", "plural": "gauges", "singular": "gauge"}
        return make(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            f"gauges.{self.group}",
            spec={"group": self.group, "scope": "Namespaced", "names": names, "versions": [version]},
        )


Step = Callable[[Session, Instance], object]


@dataclass(frozen=True)
class Verb:
    """`undo` is its rollback, None where Tacker has none."""

    do: Step
    undo: Step | None = None


def lead(endpoint: Endpoint, instance: Instance, step: Step, seconds: float) -> None:
    """Runs one step as one operation; raises what it raises."""
    operation = Operation(step.__name__, instance.id, seconds)
    with Session(endpoint, Options(), operation, inventory_namespace=INVENTORIES) as session:
        step(session, instance)


def instantiate(session: Session, instance: Instance) -> None:
    resources = session.place(instance.package())
    session.reconcile(resources, prune=Prune(), first=True)
    session.vnfcs(_vdus(resources))


def remove(session: Session, instance: Instance) -> None:
    session.reconcile([], prune=Prune())


def scale(session: Session, instance: Instance) -> None:
    _scale_to(session, instance, SCALED)


def scale_back(session: Session, instance: Instance) -> None:
    _scale_to(session, instance, 1)


def heal(session: Session, instance: Instance) -> None:
    """The chosen pods are replaced, the Gauge is made again."""
    vdus = _recorded(session, instance, SCALED)
    chosen = {"web": set(instance.chosen), "gauge": {f"main-{number}" for number in range(SCALED)}}
    replacement = session.replacement(vdus, chosen, list(vdus.values()), everything=False, recreate=True)
    session.reconcile(list(vdus.values()), prune=None, replacement=replacement)
    session.vnfcs(vdus)


def change(session: Session, instance: Instance) -> None:
    _change_to(session, instance.next_package())


def change_back(session: Session, instance: Instance) -> None:
    _change_to(session, instance.package())


VERBS = {
    "instantiate": Verb(instantiate, remove),
    "scale": Verb(scale, scale_back),
    "heal": Verb(heal),
    "change": Verb(change, change_back),
    "terminate": Verb(remove),
}
"""In the order of a life."""


def _recorded(session: Session, instance: Instance, count: int) -> dict[str, CustomResource]:
    """The VDUs as the instance's record has them, with that count of the Gauge."""
    vdus = session.stored_vdus({"gauge": resource_for(instance.gauge()), "web": resource_for(instance.web())})
    if not vdus["gauge"].replicas():
        raise InvalidRequest("The Gauge's kind has no count to scale.")
    return counts.with_counts(vdus, {"gauge": count})


def _scale_to(session: Session, instance: Instance, count: int) -> None:
    vdus = _recorded(session, instance, count)
    session.reconcile([vdus["gauge"]], prune=None)
    session.vnfcs(vdus)


def _change_to(session: Session, package: list[Object]) -> None:
    resources = session.place(package)
    vdus = counts.with_counts(_vdus(resources), {"gauge": SCALED})
    changed = {obj.key: obj for obj in vdus.values()}
    session.reconcile([changed.get(obj.key, obj) for obj in resources], prune=Prune())
    session.vnfcs(vdus)


def _vdus(resources: list[CustomResource]) -> dict[str, CustomResource]:
    by_name = {(obj.key.kind, obj.key.name): obj for obj in resources}
    return {"gauge": by_name["Gauge", "main"], "web": by_name["Deployment", "web"]}
