# SPDX-License-Identifier: Apache-2.0
"""Users of Tacker's API, whose requests reach a conductor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from oslo_context import context as oslo_context
from tacker import context


@contextlib.contextmanager
def requested_by(role: str) -> Iterator[None]:
    """The request of a user with a role in the project `red`, as Tacker's conductor receives it."""
    sent = context.Context(user_id="u", tenant_id="red", roles=[role], overwrite=False).to_dict()
    context.Context.from_dict(sent).update_store()
    yield
    oslo_context.RequestContext(overwrite=False).update_store()
