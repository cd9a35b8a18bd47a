# SPDX-License-Identifier: Apache-2.0
"""Users of Tacker's API, whose requests reach a conductor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from oslo_context import context as oslo_context
from tacker import context


@contextlib.contextmanager
def requested_by(role: str, project: str = "red") -> Iterator[None]:
    """The request of a user with a role in a project, as Tacker's conductor receives it."""
    before = oslo_context.get_current()
    sent = context.Context(user_id="u", tenant_id=project, roles=[role], overwrite=False).to_dict()
    context.Context.from_dict(sent).update_store()
    try:
        yield
    finally:
        (before or oslo_context.RequestContext(overwrite=False)).update_store()
