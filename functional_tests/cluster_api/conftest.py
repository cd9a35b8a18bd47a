# SPDX-License-Identifier: Apache-2.0
"""One management cluster for the whole family, made of its sample package: the modules work on it side by side.

A module that stops a provider has it to itself meanwhile.
"""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from .. import sample_onboarding, turns
from ..client import Body, Client, OperationError
from ..conftest import Shown
from ..families import BROUGHT
from ..sample_onboarding import Sample
from ..testbed.kubernetes import Kubernetes
from ..vnf import Vnf

SAMPLES = ("cluster_api_management", "cluster_api_workload", "cluster_api_workload_topology")
KEY_RACE = "CSR not signed by referenced private key"
"""Says cert-manager of a Certificate whose key two of its workers have made at once; it tries again after an hour
(cert-manager/cert-manager#6331)."""


@pytest.fixture(scope="module")
def samples(tacker: Client, vim: Body, kubernetes: Kubernetes, shown: Shown) -> Iterator[dict[str, Sample]]:
    """The family's sample packages by their names; the one of the management cluster is instantiated."""
    with ExitStack() as stack:
        for name in BROUGHT:
            stack.enter_context(turns.locked(name, fcntl.LOCK_SH))
        make = partial(make_management, tacker, vim, kubernetes, shown)
        found = stack.enter_context(turns.shared("management-cluster", make, partial(remove_management, tacker, vim)))
        yield {name: Sample(*sample) for name, sample in found["samples"].items()}


def make_management(tacker: Client, vim: Body, kubernetes: Kubernetes, shown: Shown) -> dict[str, Any]:
    with shown():
        sample_onboarding.load(kubernetes, SAMPLES)
        onboarded = sample_onboarding.onboard(tacker, SAMPLES)
    controllers = onboarded[SAMPLES[0]]
    management = Vnf.create(tacker, vim, controllers.vnfd_id)
    try:
        management.instantiate(*controllers.files, wait_timeout=200)
    except OperationError as error:
        if KEY_RACE not in str(error):
            raise
        management.roll_back(error.operation["id"])
        management.instantiate(*controllers.files, wait_timeout=200)
    return {"instance": management.id, "samples": onboarded}


def remove_management(tacker: Client, vim: Body, made: dict[str, Any]) -> None:
    Vnf(tacker, vim, made["instance"]).remove()
    for package_id, *_ in made["samples"].values():
        tacker.delete_package(package_id)
