# SPDX-License-Identifier: Apache-2.0
"""The site of a module, whose SITE is the kind of it. kubespray itself is tested if a checkout of it is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..testbed.bed import Environment
from . import kubespray_itself
from .site import Site, opened

collect_ignore = [] if kubespray_itself.CHECKOUT else ["test_kubespray_itself.py"]


@pytest.fixture(scope="module")
def site(bed: Environment, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(request.module.SITE, tmp_path_factory.mktemp("site")) as one:
        yield one
