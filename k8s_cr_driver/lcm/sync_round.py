# SPDX-License-Identifier: Apache-2.0
"""Clusters that do not respond to the database synchronization.

Tacker looks at all instances of a round one after another, in one thread. So a cluster without a response is asked once in a
round, not once for each of its instances.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from tacker.sol_refactored.common import config

from k8s_cr_driver.errors import ConnectionFailed, TransportError, Unreadable
from k8s_cr_driver.kube.endpoint import Endpoint

CONF = config.CONF

ROUND = 0.9
"""Part of the interval between two rounds for which a cluster is not asked again: in the next round it must be asked."""

_failed: dict[Endpoint, tuple[float, str]] = {}
"""When each cluster, with the credentials that it was asked with, has not responded, and the error."""


@contextlib.contextmanager
def once_in_a_round(endpoint: Endpoint) -> Iterator[None]:
    """Encloses a look at a cluster; ConnectionFailed if an earlier look of this round has found that it does not respond."""
    begun = time.monotonic()
    for known, (since, _) in list(_failed.items()):  # of any cluster: an endpoint may have no instance any more
        if begun - since >= ROUND * CONF.db_synchronization_interval:
            _failed.pop(known, None)
    if endpoint in _failed:
        error = _failed[endpoint][1]
        raise ConnectionFailed(f"The cluster is not asked again in this round of the database synchronization: {error}")
    try:
        yield
    except Unreadable:  # of an object of one instance, perhaps
        raise
    except (ConnectionFailed, TransportError) as failure:
        _failed[endpoint] = begun, str(failure)
        raise
