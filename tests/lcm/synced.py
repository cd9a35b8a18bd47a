# SPDX-License-Identifier: Apache-2.0
"""A VNF instance that Tacker's database synchronization looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils
from tacker.sol_refactored.nfvo import nfvo_client

from k8s_cr_driver.lcm.driver import Driver
from tests.fake_api import FakeApi
from tests.lcm.instance import Instance


class Synced(Instance):
    """With what Tacker has beside it: a database without other operations, and the instance's package."""

    def __init__(self, api: FakeApi, folder: Path, manifests: list[dict[str, Any]], **package: Any) -> None:
        super().__init__(api, folder, manifests, **package)
        self.packages: dict[str, Any] = {}
        """By the id of their VNFD; `vnfd` for any other id."""
        self.instantiate()
        self.inst.vnfdId = "vnfd"
        self.info = self.inst.instantiatedVnfInfo
        self.info.scaleStatus = [objects.ScaleInfoV2(aspectId="web", scaleLevel=1)]
        self.info.maxScaleLevels = [objects.ScaleInfoV2(aspectId="web", scaleLevel=5)]

    def differs(self) -> bool:
        try:
            Driver().diff_check_inst(self.inst, self.inst.vimConnectionInfo["vim1"])
        except sol_ex.DbSyncNoDiff:
            return False
        return True

    def sync(self, running: str = "") -> None:
        """`running` is the state of an operation that the database has besides."""

        def operations(context: Any, vnfInstanceId: str, operationState: str) -> list[str]:  # noqa: N803 - Tacker's names
            return ["operation"] if operationState == running else []

        with pytest.MonkeyPatch.context() as tacker:
            tacker.setattr(objects.VnfLcmOpOccV2, "get_by_filter", operations)
            in_database = self.inst.obj_clone()
            tacker.setattr(inst_utils, "get_inst", lambda *_: in_database)
            tacker.setattr(nfvo_client.NfvoClient, "__init__", lambda _: None)
            tacker.setattr(nfvo_client.NfvoClient, "get_vnfd", lambda _, __, vnfd: self.packages.get(vnfd, self.vnfd))
            Driver().sync_db(None, self.inst, self.inst.vimConnectionInfo.get("vim1"))

    def levels(self) -> dict[str, int]:
        return {one.aspectId: one.scaleLevel for one in self.info.scaleStatus}

    def vnfcs(self) -> set[str]:
        return {vnfc.id for vnfc in self.info.vnfcResourceInfo}
