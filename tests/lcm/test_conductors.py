# SPDX-License-Identifier: Apache-2.0
"""Two of Tacker's own conductors, each on a host of its own, working on one operation: the later one decides its result."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg
from tacker import context
from tacker.common import coordination
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import lcm_op_occ_utils as lcmocc_utils
from tacker.sol_refactored.conductor.conductor_v2 import ConductorV2

from k8s_cr_driver.lcm import registration
from tests.fake_api import FakeApi
from tests.instance import BLUE, CONDITIONS, crontab, crontab_crd, status, wait_for
from tests.lcm.instance import Instance
from tests.lcm.vims import PROJECT, Vim, request_of
from tests.lcm.web import deployment

OPERATION = "8f0e2ef0-5d8a-4a43-a1f0-0000000000aa"


class Nfvo:
    """In the place of Tacker's client of the NFVO: one package, and a list of the notified states."""

    def __init__(self, vnfd: Any) -> None:
        self.notified: list[str] = []
        self._vnfd = vnfd

    def get_vnfd(self, context: Any, vnfd_id: str, all_contents: bool = False) -> Any:
        return self._vnfd

    def send_lcmocc_notification(self, context: Any, lcmocc: Any, inst: Any, endpoint: str) -> None:
        self.notified.append(lcmocc.operationState)


class Conductor(ConductorV2):  # type: ignore[misc]
    """Its start marks every operation under way FAILED_TEMP, as Tacker has it."""

    def _periodic_call(self) -> None:
        """Database synchronization is not what is tested here."""


class Host:
    """A conductor behind an RPC server with one thread, and with locks of its own."""

    def __init__(self, name: str, folder: Path, vnfd: Any, transport: oslo_messaging.RPCTransport) -> None:
        self.nfvo = Nfvo(vnfd)
        self._conductor = Conductor()
        self._conductor.nfvo_client = self.nfvo
        self._locks = f"file://{folder}/{name}"
        self._coordinator = coordination.Coordinator(prefix="tacker-")
        target = oslo_messaging.Target(topic=name, server=name)
        self._server = oslo_messaging.get_rpc_server(transport, target, [self], executor="threading")
        self._server.start(override_pool_size=1)
        self._client = oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(topic=name))

    def retry(self) -> None:
        self._client.cast({"project": PROJECT}, "retry_lcm_op")

    def is_free(self) -> bool:
        """Waits until its only thread has taken another call; whether the lock of the instance is free."""
        return bool(self._client.prepare(timeout=60).call({}, "lock"))

    def retry_lcm_op(self, message: Any) -> None:
        """An RPC. Tacker's server makes the context of what comes with the message."""
        cfg.CONF.set_override("backend_url", self._locks, "coordination")
        coordination.COORDINATOR = self._coordinator
        with request_of(message["project"]):
            self._conductor.retry_lcm_op(context.get_admin_context(), OPERATION)

    def lock(self, message: Any) -> bool:
        """An RPC."""
        lock = self._coordinator.get_lock(BLUE)
        free: bool = lock.acquire(blocking=False)
        if free:
            lock.release()
        return free

    def stop(self) -> None:
        self._server.stop()
        self._server.wait()


@pytest.fixture
def host(cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Host]]:
    """Starts hosts, of which each finds one instantiate that has failed for a time."""
    registration.install()
    cfg.CONF.set_override("restrict_tenants", False, "k8s_cr")  # a member retries, in the namespace of the inventories
    monkeypatch.setattr(coordination, "COORDINATOR", None)
    cluster.put(crontab_crd(**CONDITIONS))
    blue = Instance(cluster, tmp_path / "package", [deployment(1), crontab("one")])
    blue.inst.vimConnectionInfo["vim1"].vimId = BLUE
    _store(blue)
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, "fake://")
    hosts: list[Host] = []

    def start() -> Host:
        hosts.append(Host(f"host-{len(hosts)}", tmp_path, blue.vnfd, transport))
        return hosts[-1]

    yield start
    for one in hosts:
        one.stop()
    transport.cleanup()
    cfg.CONF.clear_override("backend_url", "coordination")
    cfg.CONF.clear_override("restrict_tenants", "k8s_cr")
    admin = context.get_admin_context()
    for kind in (objects.VnfInstanceV2, objects.VnfLcmOpOccV2, objects.GrantRequestV1, objects.GrantV1):
        for stored in kind.get_all(admin):
            stored.delete(admin)


def _store(blue: Instance) -> None:
    """The instance and its operation, as Tacker's database has them."""
    admin, now = context.get_admin_context(), datetime.datetime.now(datetime.timezone.utc)
    for name in ("vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion"):
        setattr(blue.inst, name, "vnfd")
    blue.inst.instantiationState = "NOT_INSTANTIATED"
    blue.inst.create(admin)
    params = {"lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml"], "wait-timeout": 60}
    req = objects.InstantiateVnfRequest.from_dict({"flavourId": "simple", "additionalParams": params})
    req.vimConnectionInfo = blue.inst.vimConnectionInfo
    ids = {"vnfInstanceId": BLUE, "vnfLcmOpOccId": OPERATION}
    common = {"operation": "INSTANTIATE", "isAutomaticInvocation": False}
    objects.GrantRequestV1(vnfdId="vnfd", **ids, **common).create(admin)
    objects.GrantV1(id="grant", **ids).create(admin)
    objects.VnfLcmOpOccV2(
        **common, id=OPERATION, operationState="FAILED_TEMP", stateEnteredTime=now, startTime=now, vnfInstanceId=BLUE,
        grantId="grant", operationParams=req, isCancelPending=False,
    ).create(admin)  # fmt: skip


def operation() -> Any:
    return objects.VnfLcmOpOccV2.get_by_id(context.get_admin_context(), OPERATION)


def token(api: FakeApi) -> str:
    inventory = api.find("ConfigMap", "default", f"k8s-cr-driver-{BLUE}") or {"metadata": {"annotations": {}}}
    return str(inventory["metadata"]["annotations"].get("k8s-cr-driver/token", ""))


def test_a_worker_whose_operation_was_given_to_another_conductor_stores_nothing(
    cluster: FakeApi, host: Callable[[], Host]
) -> None:
    first = host()
    first.retry()
    wait_for(cluster, lambda: bool(cluster.find("CronTab", "default", "one")))
    before = token(cluster)
    second = host()
    assert operation().operationState == "FAILED_TEMP"

    second.retry()
    wait_for(cluster, lambda: token(cluster) != before)
    assert first.is_free()
    assert operation().operationState == "PROCESSING"
    cluster.set_status("CronTab", "default", "one", status())
    assert second.is_free()
    assert operation().operationState == "COMPLETED"
    assert first.nfvo.notified == ["PROCESSING"]
    assert second.nfvo.notified == ["PROCESSING", "COMPLETED"]


def test_a_retry_has_the_new_token_of_the_vim_while_tacker_refuses_to_change_the_stored_one(
    cluster: FakeApi, host: Callable[[], Host], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vim = Vim(cluster.url, tmp_path / "keys", monkeypatch)
    try:
        cluster.knobs.tokens = {"new"}
        cluster.react("CronTab", lambda live: live.get("status") or cluster.set_status("CronTab", "default", "one", status()))
        vim.update("new")
        one = host()
        one.retry()
        assert one.is_free() and operation().operationState == "FAILED_TEMP"
        assert "does not accept the credentials" in operation().error.detail
        with pytest.raises(sol_ex.OtherOperationInProgress):
            lcmocc_utils.check_lcmocc_in_progress(context.get_admin_context(), BLUE)  # the first act of a MODIFY

        cfg.CONF.set_override("credentials_from_vim", True, "k8s_cr")
        one.retry()
        assert one.is_free() and operation().operationState == "COMPLETED"
    finally:
        cfg.CONF.clear_override("credentials_from_vim", "k8s_cr")
        vim.delete()
