# SPDX-License-Identifier: Apache-2.0
"""[k8s_cr] credentials_from_vim: one update of a registered VIM holds for all its instances, for others' instances never."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg
from tacker import context
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.errors import Forbidden
from k8s_cr_driver.lcm import registered_vim
from k8s_cr_driver.lcm.initiator import UNKNOWN, Initiator
from tests.fake_api import FakeApi
from tests.instance import BLUE
from tests.lcm.instance import Instance
from tests.lcm.vims import OTHER_PROJECT, PROJECT, Vim, package_of, request_of
from tests.lcm.web import deployment


@pytest.fixture
def from_vim() -> Iterator[None]:
    cfg.CONF.set_override("credentials_from_vim", True, "k8s_cr")
    yield
    cfg.CONF.clear_override("credentials_from_vim", "k8s_cr")


@pytest.fixture(autouse=True)
def unrestricted() -> Iterator[None]:
    """Tenants' objects are in the namespace of the inventories here."""
    cfg.CONF.set_override("restrict_tenants", False, "k8s_cr")
    yield
    cfg.CONF.clear_override("restrict_tenants", "k8s_cr")


@pytest.fixture
def vim(cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vim]:
    one = Vim(cluster.url, tmp_path / "keys", monkeypatch)
    yield one
    one.delete()


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    """An instance whose stored token the cluster no longer accepts."""
    return instantiated(cluster, tmp_path, PROJECT)


def instantiated(cluster: FakeApi, tmp_path: Path, project: str) -> Instance:
    one = Instance(cluster, tmp_path / "package", [deployment(1)])
    one.inst.vimConnectionInfo["vim1"].vimId = BLUE
    with request_of(project):
        one.instantiate()
    cluster.knobs.tokens = {"new"}
    return one


def test_each_operation_has_the_token_that_the_vim_has_now(
    cluster: FakeApi, vim: Vim, blue: Instance, from_vim: None, caplog: pytest.LogCaptureFixture
) -> None:
    vim.update("new")
    blue.heal()
    cluster.knobs.tokens = {"newer"}
    vim.update("newer")
    blue.heal()
    assert blue.inst.vimConnectionInfo["vim1"].accessInfo == {"bearer_token": "token"}
    assert "newer" not in caplog.text


def test_without_the_option_the_stored_token_is_used(vim: Vim, blue: Instance) -> None:
    vim.update("new")
    with pytest.raises(sol_ex.SolException, match="does not accept the credentials"):
        blue.heal()


def test_a_vim_that_is_not_registered_has_no_other_credentials_than_the_stored_ones(
    cluster: FakeApi, vim: Vim, blue: Instance, from_vim: None, caplog: pytest.LogCaptureFixture
) -> None:
    blue.inst.vimConnectionInfo["vim1"].vimId = "8f0e2ef0-5d8a-4a43-a1f0-00000000000c"
    cluster.knobs.tokens = {"token"}
    blue.heal()
    assert "is not registered" in caplog.text


def test_a_vims_credentials_are_not_sent_to_another_endpoint(
    cluster: FakeApi, vim: Vim, blue: Instance, from_vim: None, caplog: pytest.LogCaptureFixture
) -> None:
    vim.update("new")
    blue.inst.vimConnectionInfo["vim1"].interfaceInfo["endpoint"] = cluster.url.replace("127.0.0.1", "localhost")
    with pytest.raises(sol_ex.SolException, match="does not accept the credentials"):
        blue.heal()
    assert "has the endpoint" in caplog.text


@pytest.mark.parametrize("is_admin", [True, False], ids=["admin", "member"])
@pytest.mark.parametrize("acts", ["", PROJECT, OTHER_PROJECT])
@pytest.mark.parametrize("owner, accepted", [(PROJECT, True), (OTHER_PROJECT, False)])
def test_an_instance_uses_the_vims_of_its_own_project_whoever_acts(
    cluster: FakeApi, tmp_path: Path, vim: Vim, from_vim: None, owner: str, accepted: bool, acts: str, is_admin: bool
) -> None:
    vim.update("new")
    blue = instantiated(cluster, tmp_path, owner)
    refused = pytest.raises(sol_ex.SolException, match="does not accept the credentials")
    with request_of(acts, is_admin=is_admin), contextlib.nullcontext() if accepted else refused:
        blue.heal()
    assert blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["project"] == owner


@pytest.mark.parametrize("acts", [PROJECT, OTHER_PROJECT])
@pytest.mark.parametrize(("owner", "accepted"), [(PROJECT, True), (OTHER_PROJECT, False), ("", False)])
def test_an_instance_without_a_recorded_project_has_that_of_its_package(
    cluster: FakeApi, tmp_path: Path, vim: Vim, from_vim: None, owner: str, accepted: bool, acts: str
) -> None:
    """An earlier version has instantiated it. Who acts next may be anybody."""
    vim.update("new")
    blue = instantiated(cluster, tmp_path, PROJECT)
    own = blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]
    del own["project"], own["vnfd-id"]
    blue.inst.vnfdId = "vnfd-of-blue"
    refused = pytest.raises(sol_ex.SolException, match="does not accept the credentials")
    package = package_of(owner, "vnfd-of-blue") if owner else contextlib.nullcontext()
    with package, request_of(acts), contextlib.nullcontext() if accepted else refused:
        blue.heal()
    assert blue.inst.instantiatedVnfInfo.metadata["k8s_cr"].get("project", "") == (owner if accepted else "")


@pytest.mark.parametrize(
    ("began", "acts", "is_admin", "key", "accepted"),
    [
        (PROJECT, PROJECT, False, "default", True),
        (OTHER_PROJECT, PROJECT, True, "default", False),
        (OTHER_PROJECT, PROJECT, False, "default", False),
        (PROJECT, OTHER_PROJECT, True, "default", True),
        (OTHER_PROJECT, PROJECT, True, "vim1", True),
        (None, PROJECT, True, "default", False),
        (None, PROJECT, False, "default", True),
    ],
    ids=["retried by itself", "by an admin", "by another one", "of its own VIM", "a VIM of the grant", "not known", "a member"],
)
def test_a_retry_takes_no_default_vim_of_another_project(
    vim: Vim, began: str | None, acts: str, is_admin: bool, key: str, accepted: bool
) -> None:
    """Tacker reads it with the permissions of who retries the instantiate."""
    inst = objects.VnfInstanceV2(vimConnectionInfo={key: objects.VimConnectionInfo(vimId=BLUE, vimType="a")})
    request = objects.InstantiateVnfRequest(flavourId="simple")
    user = context.Context(user_id="u", tenant_id=began, is_admin=False, overwrite=False)
    refused = pytest.raises(Forbidden, match="vimConnectionInfo: the request names no VIM")
    with request_of(acts, is_admin=is_admin), contextlib.nullcontext() if accepted else refused:
        registered_vim.check_default(request, None, inst, Initiator(user) if began else UNKNOWN)
