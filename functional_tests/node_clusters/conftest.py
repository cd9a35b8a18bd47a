# SPDX-License-Identifier: Apache-2.0
"""A site whose machines go at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud import openstack
from tests.credentials import openstack as tacker_api

from ..testbed.bed import Environment
from .site import Site


@pytest.fixture(scope="module")
def site(bed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with openstack.serving() as cloud, tacker_api.openstack() as tacker:
        one = Site(tmp_path_factory.mktemp("site"), cloud, tacker)
        yield one
        one.close()
