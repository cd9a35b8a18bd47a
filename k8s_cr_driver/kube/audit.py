# SPDX-License-Identifier: Apache-2.0
"""The audit log: one line of JSON for each write and delete that the driver sends to a cluster.

A logger of its own, so that an operator can store the lines apart from the others. They name who, where and what, and never
the content of a request or the text of a response, which may have secrets. JSON escapes control characters of others.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from oslo_context import context

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, JustRestarted
from k8s_cr_driver.objects.api_groups import REVIEWS

LOGGER = "k8s_cr_driver.audit"
_LOG = logs.logger(LOGGER)
_REVIEWS = tuple(f"/apis/{group}/" for group in sorted(REVIEWS))


def record(
    method: str,
    cluster: str,
    path: str,
    query: Collection[tuple[str, str]],
    adopted: bool,
    error: BaseException | None,
) -> None:
    """Logs a write, unless nothing is ever stored of it: a review. `error` is None for a success."""
    if path.startswith(_REVIEWS):
        return
    current = context.get_current()
    line = {
        "project": getattr(current, "project_id", None),
        "request": getattr(current, "request_id", None),
        "instance": getattr(current, "vnf_instance", None),
        "operation": getattr(current, "vnf_operation", None),
        "cluster": cluster,
        "verb": method,
        "object": path,
        "forced": ("force", "true") in query,
        "adopted": adopted,
        "result": _result(error),
    }
    _LOG.info("%s", json.dumps(line))


def _result(error: BaseException | None) -> str:
    """Without a response, and with a status of 5xx, the request may have taken effect or not."""
    if error is None:
        return "accepted"
    return f"status {error.status}" if isinstance(error, ApiError | JustRestarted) else "no response"
