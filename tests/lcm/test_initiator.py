# SPDX-License-Identifier: Apache-2.0
"""An operation is judged by who began it, whoever retries it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tacker import context
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm import initiator
from tests.fake_api import FakeApi
from tests.instance import BLUE
from tests.lcm.instance import Instance
from tests.lcm.test_policy import RED_1, hook, tacker_policy, web
from tests.lcm.users import requested_by

__all__ = ["tacker_policy"]

FAILED = "a script of the package has failed"


class Operation:
    """The operation of an instance in Tacker's database, with its request for the grant."""

    def __init__(self, blue: Instance) -> None:
        self._admin, now = context.get_admin_context(), datetime.datetime.now(datetime.timezone.utc)
        self._blue = blue
        common = {"operation": "INSTANTIATE", "isAutomaticInvocation": False, "vnfInstanceId": BLUE}
        objects.GrantRequestV1(vnfdId="vnfd", vnfLcmOpOccId="operation", **common).create(self._admin)
        objects.VnfLcmOpOccV2(
            **common, id="operation", operationState="PROCESSING", stateEnteredTime=now, startTime=now, isCancelPending=False
        ).create(self._admin)

    def fails(self, **params: Any) -> None:
        """As Tacker stores it; `params` are those of the user's request."""
        found = self._found()
        found.error = objects.ProblemDetails(status=500, detail=FAILED)
        found.update(self._admin)
        [stored] = objects.GrantRequestV1.get_by_filter(self._admin, vnfLcmOpOccId="operation")
        if params:
            stored.additionalParams = params
            stored.update(self._admin)
        self._blue.grant_req = stored

    def delete(self) -> None:
        self._found().delete(self._admin)
        for stored in objects.GrantRequestV1.get_by_filter(self._admin, vnfLcmOpOccId="operation"):
            stored.delete(self._admin)

    def _found(self) -> Any:
        return objects.VnfLcmOpOccV2.get_by_id(self._admin, "operation")


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    return Instance(cluster, tmp_path, [RED_1, web(), hook()])


@pytest.fixture
def operation(blue: Instance) -> Iterator[Operation]:
    made = Operation(blue)
    yield made
    made.delete()


def test_what_a_tenant_began_stays_a_tenants_when_an_admin_retries_it(blue: Instance, operation: Operation) -> None:
    with requested_by("member"), pytest.raises(sol_ex.SolException, match="restrict_tenants"):
        blue.instantiate()
    operation.fails()
    with requested_by("admin", "blue"), pytest.raises(sol_ex.SolException, match="restrict_tenants"):
        blue.instantiate()


def test_what_an_admin_began_stays_an_admins_when_a_tenant_retries_it(
    cluster: FakeApi, blue: Instance, operation: Operation
) -> None:
    cluster.knobs.denied.add(("create", "apps", "deployments", "red-1"))
    with requested_by("admin"), pytest.raises(sol_ex.SolException):
        blue.instantiate()
    cluster.knobs.denied.clear()
    operation.fails()
    with requested_by("member", "blue"):
        blue.instantiate()
    assert blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["project"] == "red"


def test_a_request_does_not_say_who_began_its_operation(blue: Instance, operation: Operation) -> None:
    """It has failed in a script before the driver was called, which so could not say it."""
    forged = {initiator.KEY: {"user": "u", "project": "red", "roles": ["admin"], "is_admin": True}}
    operation.fails(**forged)
    message = "restrict_tenants.*fail the operation and begin it again, because it is not known who began it"
    with requested_by("admin"), pytest.raises(sol_ex.SolException, match=message):
        blue.instantiate(**forged)


def test_an_operation_of_which_nobody_knows_who_began_it_is_a_tenants(blue: Instance, operation: Operation) -> None:
    operation.fails()
    with requested_by("admin"), pytest.raises(sol_ex.SolException, match="it is not known who began it"):
        blue.instantiate()


def test_the_user_of_the_first_attempt_is_read_again_by_another_conductor(blue: Instance, operation: Operation) -> None:
    """With the roles that it had."""
    with requested_by("member"), pytest.raises(sol_ex.SolException):
        blue.instantiate()
    operation.fails()
    found = initiator.of_operation("operation", None, blue.grant_req)
    assert (found.project, found.user.roles, found.user.is_admin) == ("red", ["member"], False)
