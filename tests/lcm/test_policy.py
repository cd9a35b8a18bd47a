# SPDX-License-Identifier: Apache-2.0
"""The operator's policy is applied before the first write, and to no rollback to what was permitted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_policy import policy as oslo_policy
from tacker import context, policy
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.errors import Forbidden
from k8s_cr_driver.lcm import conf, desired, permitted
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.policy import Policy
from tests.fake_api import FakeApi
from tests.instance import config_map, obj
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.users import requested_by
from tests.lcm.web import deployment


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    for option in ("denied_kinds", "allow_force_conflicts", "restrict_tenants", "max_wait_timeout", "max_vnfcs"):
        cfg.CONF.clear_override(option, "k8s_cr")


def set_policy(**options: Any) -> None:
    for option, value in options.items():
        cfg.CONF.set_override(option, value, "k8s_cr")


def test_nothing_is_written_of_a_package_with_a_denied_kind(cluster: FakeApi, tmp_path: Path) -> None:
    set_policy(denied_kinds=["ConfigMap"])
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("a")])
    with pytest.raises(sol_ex.SolException, match=r"ConfigMap default/a: .*\[k8s_cr\] denied_kinds") as refused:
        blue.instantiate()
    assert refused.value.status == 403
    assert cluster.requests.writes == []


def test_nothing_is_written_with_a_denied_option(cluster: FakeApi, tmp_path: Path) -> None:
    set_policy(allow_force_conflicts=False)
    with pytest.raises(sol_ex.SolException, match=r"additionalParams force-conflicts: .*\[k8s_cr\] allow_force_conflicts"):
        Instance(cluster, tmp_path, [deployment(1)]).instantiate(**{"force-conflicts": True})
    assert cluster.requests.writes == []


def test_nothing_is_written_of_more_vnfcs_than_are_allowed(cluster: FakeApi, tmp_path: Path) -> None:
    """Also where the counts are not those of the manifests, which have a limit of their own."""
    set_policy(max_vnfcs=2)
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"3 VNFCs together and may have 2; .*\[k8s_cr\] max_vnfcs"):
        blue.scale("SCALE_OUT")
    assert cluster.requests.writes == []
    blue.terminate()


@pytest.mark.parametrize("chosen", [False, True])
def test_nothing_is_written_by_a_heal_of_a_denied_kind(cluster: FakeApi, tmp_path: Path, chosen: bool) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    set_policy(denied_kinds=["Deployment.apps"])
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"Deployment.apps default/web: .*\[k8s_cr\] denied_kinds"):
        blue.heal(*(cluster.names("Pod", "default") if chosen else ()))
    assert cluster.requests.writes == []


def test_nothing_is_written_by_a_scale_with_a_denied_option(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    set_policy(allow_force_conflicts=False)
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"additionalParams force-conflicts: .*\[k8s_cr\] allow_force_conflicts"):
        blue.scale("SCALE_OUT", **{"force-conflicts": True})
    assert cluster.requests.writes == []


def test_a_change_is_refused_and_its_rollback_is_not(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path / "old", [deployment(1), config_map("a")])
    blue.instantiate()
    set_policy(denied_kinds=["ConfigMap"])
    with pytest.raises(sol_ex.SolException, match="denied_kinds"):
        blue.change(make_vnfd(tmp_path / "new", [deployment(1), config_map("b")]))
    blue.roll_back_change()
    assert "a" in cluster.names("ConfigMap") and "b" not in cluster.names("ConfigMap")
    blue.terminate()
    assert cluster.names("ConfigMap") == []


def hook() -> dict[str, Any]:
    return obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "all", webhooks=[])


@pytest.fixture(autouse=True)
def tacker_policy() -> Iterator[None]:
    policy.reset()
    policy.init()
    yield
    policy.reset()


@pytest.fixture
def tenant() -> Iterator[None]:
    with requested_by("member"):
        yield


@pytest.mark.usefixtures("tenant")
def test_a_tenant_may_not_have_what_reaches_beyond_it(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1), hook()])
    with pytest.raises(sol_ex.SolException, match=r"Configuration.* all: .*k8s_cr:unrestricted .*\[k8s_cr\] restrict_tenants"):
        blue.instantiate()
    assert cluster.requests.writes == []
    set_policy(restrict_tenants=False)
    blue.instantiate()


@pytest.mark.usefixtures("tenant")
def test_an_operator_may_give_the_rule_to_another_role(cluster: FakeApi, tmp_path: Path) -> None:
    policy._ENFORCER.set_rules(oslo_policy.Rules.from_dict({permitted.UNRESTRICTED: "role:member"}), overwrite=False)
    Instance(cluster, tmp_path, [deployment(1), hook()]).instantiate()


def test_an_admin_is_not_restricted(cluster: FakeApi, tmp_path: Path) -> None:
    with requested_by("admin"):
        Instance(cluster, tmp_path, [deployment(1), hook()]).instantiate()


def test_what_the_conductor_starts_by_itself_is_not_restricted(cluster: FakeApi, tmp_path: Path) -> None:
    with requested_by("member"):
        context.get_admin_context().update_store()
        Instance(cluster, tmp_path, [deployment(1), hook()]).instantiate()


def test_a_project_and_a_vim_have_policies_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "tacker.conf"
    file.write_text("[k8s_cr]\ndenied_kinds = Secret\n[k8s_cr:red]\nallowed_namespaces = red-*\n[k8s_cr:vim1]\n")
    own = cfg.ConfigOpts()
    conf.register(own)
    own(["--config-file", str(file)])
    found = conf.policies(own, ["red", "vim1", "blue"])
    assert list(found) == ["k8s_cr", "k8s_cr:red", "k8s_cr:vim1"]
    assert found["k8s_cr"] == Policy(denied_kinds=("Secret",))
    assert found["k8s_cr:red"] == Policy(allowed_namespaces=("red-*",))
    key = ObjectKey("", "ConfigMap", "default", "a")
    with pytest.raises(Forbidden, match=r"\[k8s_cr:red\] allowed_namespaces"):
        found["k8s_cr:red"].check([key], Options(), "k8s_cr:red")


@pytest.mark.usefixtures("tenant")
def test_the_policy_of_the_project_of_a_request_is_applied(
    cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cfg.ConfigOpts, "list_all_sections", lambda _: ["k8s_cr:red"])
    cfg.CONF.register_opts(conf.POLICY, group="k8s_cr:red")
    cfg.CONF.set_override("denied_kinds", ["Deployment.*"], "k8s_cr:red")
    try:
        with pytest.raises(sol_ex.SolException, match=r"Deployment.apps default/web: .*\[k8s_cr:red\] denied_kinds"):
            Instance(cluster, tmp_path, [deployment(1)]).instantiate()
    finally:
        cfg.CONF.clear_override("denied_kinds", "k8s_cr:red")


def test_a_time_limit_has_a_maximum(cluster: FakeApi, tmp_path: Path) -> None:
    set_policy(max_wait_timeout=100)
    blue = Instance(cluster, tmp_path, [deployment(1)])
    message = r"^additionalParams wait-timeout: is more than 100 seconds; .*\[k8s_cr\] max_wait_timeout"
    with pytest.raises(sol_ex.SolException, match=message):
        blue.instantiate(**{"wait-timeout": 101})
    assert cluster.requests.writes == []
    blue.instantiate(**{"wait-timeout": 100})
    set_policy(max_wait_timeout=50)
    with pytest.raises(sol_ex.SolException, match=r"^gracefulTerminationTimeout: is more than 50 seconds"):
        blue.terminate("GRACEFUL", 51)
    blue.terminate("GRACEFUL", 1)


def test_a_rollback_applies_nothing_of_a_url_that_was_never_permitted(
    cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write what is at the URL may do so between a change and its rollback."""
    content = [config_map("a")]
    monkeypatch.setattr(desired, "RemoteManifests", lambda _: lambda url: json.dumps(content[-1]).encode())
    files = {"lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml", "https://example.com/a.json"]}
    with requested_by("member"):
        blue = Instance(cluster, tmp_path / "old", [deployment(1)])
        blue.instantiate(**files)
        before = blue.inst.obj_clone()
        content.append(hook())
        with pytest.raises(sol_ex.SolException, match="restrict_tenants"):
            blue.change(make_vnfd(tmp_path / "new", [deployment(1)]), **files)
        blue.inst = before
        with pytest.raises(sol_ex.SolException, match="restrict_tenants"):
            blue.roll_back_change()
        assert cluster.names("ValidatingWebhookConfiguration") == []
        content.append(config_map("a"))
        blue.roll_back_change()


def test_a_rollback_is_checked_where_the_record_does_not_say_of_which_package(cluster: FakeApi, tmp_path: Path) -> None:
    """As an earlier version of this driver has stored it. A MODIFY of vnfdId may have named any package since."""
    blue = Instance(cluster, tmp_path / "old", [deployment(1)])
    blue.instantiate()
    del blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["vnfd-id"]
    set_policy(denied_kinds=["ConfigMap"])
    blue.vnfd = make_vnfd(tmp_path / "other", [deployment(1), config_map("a")])
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"ConfigMap default/a: .*\[k8s_cr\] denied_kinds"):
        blue.roll_back_change()
    assert cluster.requests.writes == []
