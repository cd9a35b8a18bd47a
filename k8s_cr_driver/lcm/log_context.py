# SPDX-License-Identifier: Apache-2.0
"""Log lines of an operation name it: oslo.log writes what its context has as `instance` before each message.

Tacker's context of the request has the request's id. All lines of a thread get it, also those of libraries. The audit log
(`kube.audit`) takes the two ids from `vnf_instance` and `vnf_operation`.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

from oslo_context import context


@contextlib.contextmanager
def log_context(instance: str, operation: str) -> Iterator[None]:
    """Within it, log lines of this thread name the instance and the operation; `operation` is "" for none."""
    before = context.get_current()
    current = copy.copy(before) if before else context.RequestContext(overwrite=False)
    current.instance = f"{instance} operation {operation}" if operation else instance
    current.vnf_instance, current.vnf_operation = instance, operation
    current.update_store()
    try:
        yield
    finally:
        (before or context.RequestContext(overwrite=False)).update_store()
