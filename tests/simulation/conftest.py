# SPDX-License-Identifier: Apache-2.0
"""In virtual time the limits are those of a real cluster."""

import pytest


@pytest.fixture(autouse=True)
def short_limits() -> None:
    """Overrides the short limits of the other tests."""
