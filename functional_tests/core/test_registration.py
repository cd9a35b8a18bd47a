# SPDX-License-Identifier: Apache-2.0
"""The driver within Tacker: registered where Tacker looks, and without effect on what is not its own."""

import pytest

from ..client import Client
from ..conftest import Logged
from ..testbed import bed as testbed
from ..testbed.tacker import CONDUCTORS


def test_every_conductor_logs_that_the_driver_serves(logged: Logged):
    assert logged("k8s-cr-driver serves vimType ETSINFV.KUBERNETES.V_1") == set(CONDUCTORS)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/vnflcm/v1/vnf_instances", []),
        ("/vnflcm/v1/vnf_lcm_op_occs", []),
        ("/v1.0/vims", {"vims": []}),
    ],
)
def test_the_first_version_of_the_api_answers_as_before(tacker: Client, path: str, answer: object):
    assert tacker.read(path) == answer


def test_the_bed_is_whole(bed: testbed.Environment):
    assert testbed.environments().keys() >= {"kubernetes", "tacker"}
    assert testbed.ended() == []
