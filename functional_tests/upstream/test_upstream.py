# SPDX-License-Identifier: Apache-2.0
"""Tacker's own functional tests: whatever passes with Tacker's Kubernetes driver passes with this one.

What passes with Tacker's is read from what was recorded of it; `python -m functional_tests.upstream` runs the rest.
"""

import pytest

from ..conftest import Shown
from ..testbed.bed import Environment
from ..testbed.tacker import OWN_DRIVER, TACKERS_DRIVER
from . import runs
from .expectation import passes_with

pytestmark = pytest.mark.alone("tacker")

MODULES = ("test_vnflcm_basic", "test_change_vnfpkg", "test_kubernetes_container_update")


def test_whatever_passes_with_tackers_driver_passes_with_this_one(bed: Environment, shown: Shown):
    expected = {test for test in passes_with(TACKERS_DRIVER) if test.partition(".")[0] in MODULES}
    with shown():
        results = {result.test: result for result in runs.run(bed, OWN_DRIVER, MODULES)}
    assert {test: result.problem for test, result in results.items() if result.problem and test in expected} == {}
    assert expected and expected <= results.keys()
