# SPDX-License-Identifier: Apache-2.0
"""The site of a module, whose SITE is the kind of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..testbed.bed import Environment
from .site import Site, opened


@pytest.fixture(scope="module")
def site(bed: Environment, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(request.module.SITE, tmp_path_factory.mktemp("site")) as one:
        yield one
