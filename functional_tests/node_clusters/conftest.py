# SPDX-License-Identifier: Apache-2.0
"""The site of a module, whose SITE is the kind of it, and tests that run only if they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ..testbed.bed import Environment
from . import kubespray_itself
from .site import Site, opened

_OPTIONS = {"test_kubespray_itself.py": kubespray_itself.CHECKOUT, "test_kernel_nfs.py": os.environ.get("QEMU", "")}
collect_ignore = [module for module, option in _OPTIONS.items() if not option]


@pytest.fixture(scope="module")
def site(bed: Environment, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(request.module.SITE, tmp_path_factory.mktemp("site")) as one:
        yield one
