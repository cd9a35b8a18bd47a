# SPDX-License-Identifier: Apache-2.0
"""A VNF instance whose Turbine is ready when a test says so: an operation is under way until then."""

from typing import NamedTuple

from ..cluster import Cluster
from ..objects import Object, Place, config_map, deployment


class Turbine(NamedTuple):
    """In a place; `objects` is what the VNF instance then has."""

    place: Place

    @property
    def crd(self) -> Object:
        return self.place.crd("Turbine", status=True)

    @property
    def manifests(self) -> list[Object]:
        return [self.place.custom("Turbine", "main", power=1), config_map("config", a="1"), deployment("web")]

    @property
    def objects(self) -> list[str]:
        return [f"{kind} {self.place.name}/{name}" for kind, name in _OBJECTS.items()]

    def live(self, cluster: Cluster) -> Object | None:
        return cluster.get("Turbine", "main", self.place.name, self.place.version)

    def is_written(self, cluster: Cluster) -> bool:
        """With all that belongs to it."""
        others = (
            cluster.get("ConfigMap", "config", self.place.name),
            cluster.get("Deployment", "web", self.place.name, "apps/v1"),
        )
        return bool(self.live(cluster) and all(others))

    def make_ready(self, cluster: Cluster) -> None:
        """As its controller."""
        ready = {"type": "Ready", "status": "True", "reason": "Runs", "message": ""}
        ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        where = ("Turbine", "main", self.place.name, self.place.version)
        cluster.set_status(*where, observedGeneration=1, conditions=[ready])


_OBJECTS = {"ConfigMap": "config", "Deployment": "web", "Turbine": "main"}
