# SPDX-License-Identifier: Apache-2.0
"""Which of the objects that a label selector finds are below an object of the run."""

from __future__ import annotations

import contextlib

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import Object, controlled_by, key_of
from k8s_cr_driver.writes.owners import named, references

CHAIN = 3
"""Controllers between an object and one below it, at most: a Deployment has one, a Cluster of a topology two."""
CONTROLLERS = 20
"""That are read to see what is below one object."""


class Descent:
    """Which objects an owner controls, perhaps through others: a selector finds those of anybody, whom a report must not name.

    What cannot be read, or is one of too many, descends from nobody.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._read = client, dict[str, Object | None]()

    def includes(self, live: Object, owner: str, chain: int = CHAIN) -> bool:
        """`owner` is the uid that the chain has to lead to."""
        controller = controlled_by(live)
        for reference in [controller] if controller else references(live):
            if text(reference, "uid") == owner:
                return True
            above = self._controller(reference, key_of(live).namespace) if chain else None
            if above is not None and self.includes(above, owner, chain - 1):
                return True
        return False

    def _controller(self, reference: Object, namespace: str) -> Object | None:
        uid = text(reference, "uid")
        if uid not in self._read and len(self._read) < CONTROLLERS and not self._client.connection.is_over():
            self._read[uid] = None
            with contextlib.suppress(DriverError):
                found = named(self._client.resources, reference, namespace)
                self._read[uid] = self._client.read_again(*found) if found else None
        return self._read.get(uid)
