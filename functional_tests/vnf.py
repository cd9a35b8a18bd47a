# SPDX-License-Identifier: Apache-2.0
"""One VNF instance of a test: what Tacker's client does, in a test's words, and how it is got rid of afterwards."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .client import Body, Client, OperationError
from .objects import Place
from .packages import paths

# Seconds; a test that waits for a timeout says its own.
PATIENCE = 240.0
# Seconds: Tacker's first synchronization comes 60 s after a conductor's start, and the bed's every 10 s.
SYNCHRONIZED = 90
_BUSY = {"STARTING", "PROCESSING", "ROLLING_BACK"}


class Vnf:
    """Verbs named `begin...` return the id of an operation that has just begun, the others that of one that is COMPLETED."""

    def __init__(self, client: Client, vim: Body, id: str, place: Place | None = None) -> None:
        """Objects that name no Namespace go to `place`; without one, where the driver puts them."""
        self._client, self._vim, self.id = client, vim, id
        self.patience = PATIENCE
        self._placed = {"namespace": place.name} if place else {}

    @classmethod
    def create(cls, client: Client, vim: Body, vnfd_id: str, place: Place | None = None) -> Vnf:
        return cls(client, vim, client.create(vnfd_id)["id"], place)

    # --- what a test asks for ---------------------------------------------------------------------------------------

    def begin_instantiate(self, *files: str, vim: Body | None = None, **params: Any) -> str:
        """`files` as the package names them; `params` are additionalParams, with underscores for hyphens."""
        given = {"wait-timeout": 60, **self._placed, **_hyphened(params), "lcm-kubernetes-def-files": paths(files)}
        return self._client.instantiate(self.id, vim or self._vim, given)

    def instantiate(self, *files: str, **params: Any) -> Body:
        return self.wait(self.begin_instantiate(*files, **params))

    def scale_out(self, vdu: str, steps: int = 1) -> Body:
        return self.wait(self.begin_scale("SCALE_OUT", vdu, steps))

    def scale_in(self, vdu: str, steps: int = 1) -> Body:
        return self.wait(self.begin_scale("SCALE_IN", vdu, steps))

    def begin_scale(self, direction: str, vdu: str, steps: int = 1, **params: Any) -> str:
        return self._client.scale(self.id, direction, vdu, steps, _hyphened(params))

    def heal(self, *vnfcs: str, **params: Any) -> Body:
        """`vnfcs` are ids of vnfcResourceInfo; without any the whole instance is healed."""
        return self.wait(self.begin_heal(*vnfcs, **params))

    def begin_heal(self, *vnfcs: str, **params: Any) -> str:
        shown = self.shown()["instantiatedVnfInfo"].get("vnfcInfo", [])
        chosen = [one["id"] for one in shown if one["vnfcResourceInfoId"] in vnfcs]
        return self._client.heal(self.id, chosen, _hyphened(params))

    def change(self, vnfd_id: str, *files: str, **params: Any) -> Body:
        return self.wait(self.begin_change(vnfd_id, *files, **params))

    def begin_change(self, vnfd_id: str, *files: str, vim: Body | None = None, **params: Any) -> str:
        """To another package, with files of that; what Tacker wants beside is added."""
        wanted = {"upgrade_type": "RollingUpdate", "vdu_params": []}
        given = {**wanted, **_hyphened(params), "lcm-kubernetes-def-files": paths(files)}
        return self._client.change_package(self.id, vnfd_id, given, vim)

    def terminate(self, graceful_timeout: int | None = None, **params: Any) -> Body:
        return self.wait(self.begin_terminate(graceful_timeout, **params))

    def begin_terminate(self, graceful_timeout: int | None = None, **params: Any) -> str:
        """FORCEFUL, or GRACEFUL with a timeout in seconds."""
        return self._client.terminate(self.id, graceful_timeout=graceful_timeout, additional_params=_hyphened(params))

    def roll_back(self, operation: str) -> Body:
        """The operation once it is ROLLED_BACK."""
        self._client.roll_back(operation)
        return self.wait(operation, "ROLLED_BACK")

    def retry(self, operation: str) -> Body:
        self._client.retry(operation)
        return self.wait(operation)

    def give_up(self, operation: str) -> None:
        """Of one that is FAILED_TEMP."""
        self._client.fail(operation)

    def wait(self, operation: str, state: str = "COMPLETED") -> Body:
        return self._client.wait(operation, state, self.patience)

    def failure(self, operation: str) -> Body:
        """The ProblemDetails of an operation that is to fail."""
        problem: Body = self.wait(operation, "FAILED_TEMP")["error"]
        return problem

    def refusal(self, *files: str, vim: Body | None = None, **params: Any) -> Body:
        """The ProblemDetails of an instantiate that is to fail; it is given up at once, for it must have left nothing."""
        operation = self.begin_instantiate(*files, vim=vim, **params)
        problem = self.failure(operation)
        self._client.fail(operation)
        return problem

    # --- what Tacker shows ------------------------------------------------------------------------------------------

    def shown(self) -> Body:
        """The VnfInstance."""
        return self._client.instance(self.id)

    def vnfcs(self, vdu: str) -> list[Body]:
        """The vnfcResourceInfo of one VDU, in Tacker's order."""
        shown = self.shown()["instantiatedVnfInfo"].get("vnfcResourceInfo", [])
        return [vnfc for vnfc in shown if vnfc["vduId"] == vdu]

    def level(self, aspect: str) -> int | None:
        """The scale level; None if Tacker does not know of the aspect."""
        levels = {one["aspectId"]: one["scaleLevel"] for one in self.shown()["instantiatedVnfInfo"].get("scaleStatus", [])}
        return levels.get(aspect)

    # --- the end ----------------------------------------------------------------------------------------------------

    def remove(self) -> None:
        """Takes the instance out of Tacker, and what it has out of the cluster, whatever state it is in."""
        for operation in self._client.operations(self.id):
            self._end(operation)
        if self.shown()["instantiationState"] == "INSTANTIATED":
            operation = self.begin_terminate()
            try:
                self.wait(operation)
            except OperationError:
                self.retry(operation)
        self._client.delete(self.id)

    def _end(self, operation: Body) -> None:
        """Of what is under way or has failed only the end is awaited, or brought about."""
        try:
            if operation["operationState"] in _BUSY:
                operation = self._client.wait(operation["id"], timeout=self.patience)
        except OperationError as error:
            operation = error.operation
        if operation["operationState"] != "FAILED_TEMP":
            return
        try:
            self.roll_back(operation["id"])
        except Exception:  # there are operations without a rollback, and it may fail, too
            self._client.fail(operation["id"])


def purge(instance_id: str, bed: Mapping[str, str]) -> None:
    """What an operator does with an instance that Tacker has forgotten."""
    argv = [Path(sysconfig.get_path("scripts"), "k8s-cr"), "purge", instance_id, "--yes"]
    subprocess.run(argv, env={**os.environ, **bed}, check=True, capture_output=True, timeout=60)


def _hyphened(params: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in params.items()}
