# SPDX-License-Identifier: Apache-2.0
"""What may be wrong with a whole run, whichever test did it: looked for when no test runs any more.

On the bed's own Kubernetes, whose API server writes an audit log: objects of others that the driver has written. On another
cluster: objects that the run has left.
"""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from . import audit
from .cluster import Cluster
from .testbed import bed, paths
from .testbed.kubernetes import Kubernetes
from .testbed.ledger import Ledger
from .testbed.processes import until
from .vim import forget

# Seconds, for namespaces that still go.
_GONE_WITHIN = 30.0


class WholeRun:
    """Begins when the bed is up."""

    def __init__(self) -> None:
        self._since = datetime.now(timezone.utc).isoformat()
        self._is_others = "kubernetes" in bed.environments() and not bed.is_own(bed.cluster())
        self._before = _names() if self._is_others else set()

    def faults(self) -> dict[str, list[str]]:
        """Objects, one a line, by what is wrong with them."""
        if "kubernetes" not in bed.environments():
            return {}
        if self._is_others:
            return {"left on the cluster": self._left()}
        kubernetes = Kubernetes(Ledger(paths.STATE))
        found = audit.strangers(kubernetes.audit_log, self._since, kubernetes.crashes)
        return {"the driver has written to objects that are no instance's": found}

    def _left(self) -> list[str]:
        forget(_kubeconfig())
        until(lambda: not _names() - self._before, _GONE_WITHIN)
        return sorted(_names() - self._before)


def _names() -> set[str]:
    with closing(Cluster(_kubeconfig())) as cluster:
        return cluster.names()


def _kubeconfig() -> Path:
    return Path(bed.environments()["kubernetes"]["KUBECONFIG"])
