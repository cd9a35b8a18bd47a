# SPDX-License-Identifier: Apache-2.0
"""The operator's policy is applied before the first write, and to no rollback to what was permitted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_policy import policy as oslo_policy
from tacker import context, policy
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.errors import Forbidden
from k8s_cr_driver.lcm import conf, desired, permitted
from k8s_cr_driver.lcm.options import OF_ID
from k8s_cr_driver.objects.keys import ObjectKey, labels
from k8s_cr_driver.vnf.policy import Policy
from tests.fake_api import FakeApi, faults
from tests.instance import GREEN, config_map, crontab, crontab_crd, obj, wait_for
from tests.instance import Instance as EngineInstance
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.users import requested_by
from tests.lcm.web import deployment


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    for option in SET:
        cfg.CONF.clear_override(option, "k8s_cr")
    SET.clear()


SET: set[str] = set()


def set_policy(**options: Any) -> None:
    for option, value in options.items():
        SET.add(option)
        cfg.CONF.set_override(option, value, "k8s_cr")


@pytest.fixture
def red() -> Iterator[Callable[..., None]]:
    """Sets options of the group of the project `red`."""
    group = "k8s_cr:red"
    cfg.CONF.register_opts(OF_ID, group=group)

    def set_own(**options: Any) -> None:
        for option, value in options.items():
            cfg.CONF.set_override(option, value, group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cfg.ConfigOpts, "list_all_sections", lambda _: [group])
        yield set_own
    cfg.CONF.unregister_opts(OF_ID, group=group)


HOME = {"metadata": {"name": "red-1", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
RED_1 = {"apiVersion": "v1", "kind": "Namespace", **HOME}


def web() -> dict[str, Any]:
    """The object of the VDU in a namespace of the tenant."""
    made = deployment(0)
    return {**made, "metadata": {**made["metadata"], "namespace": "red-1"}}


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
    blue = Instance(cluster, tmp_path, [RED_1, web(), hook()])
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
    context.get_admin_context().update_store()
    try:
        Instance(cluster, tmp_path, [deployment(1), hook()]).instantiate()
    finally:
        oslo_context.RequestContext(overwrite=False).update_store()


def test_what_the_conductor_starts_for_a_tenants_instance_is_restricted(cluster: FakeApi, tmp_path: Path) -> None:
    """As an automatic heal: the operator has restricted since what a tenant may have."""
    set_policy(tenant_kinds=["*WebhookConfiguration.*"])
    with requested_by("member"):
        blue = Instance(cluster, tmp_path, [RED_1, web(), hook()])
        blue.instantiate()
    set_policy(tenant_kinds=[])
    context.get_admin_context().update_store()
    try:
        with pytest.raises(sol_ex.SolException, match="restrict_tenants"):
            blue.heal()
    finally:
        oslo_context.RequestContext(overwrite=False).update_store()
    with requested_by("admin"):
        blue.heal()


def test_a_project_and_a_vim_have_policies_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "tacker.conf"
    file.write_text("[k8s_cr]\ndenied_kinds = Secret\n[k8s_cr:red]\nallowed_namespaces = red-*\n[k8s_cr:vim1]\n")
    own = cfg.ConfigOpts()
    conf.register(own)
    own(["--config-file", str(file)])
    found = conf.policies(own, ["red", "vim1", "blue"])
    assert list(found) == ["k8s_cr", "k8s_cr:red", "k8s_cr:vim1"]
    assert found["k8s_cr"] == Policy(denied_kinds=("Secret",), allow_delete_guests=False)
    assert found["k8s_cr:red"] == Policy(allowed_namespaces=("red-*",))
    key = ObjectKey("", "ConfigMap", "default", "a")
    with pytest.raises(Forbidden, match=r"\[k8s_cr:red\] allowed_namespaces"):
        found["k8s_cr:red"].check([key], group="k8s_cr:red")


@pytest.mark.parametrize("role", ["member", "admin"])
def test_the_policy_of_the_project_of_an_instance_is_applied_whoever_acts(
    cluster: FakeApi, tmp_path: Path, red: Callable[..., None], role: str
) -> None:
    blue = Instance(cluster, tmp_path, [RED_1, web()])
    with requested_by("member"):
        blue.instantiate()
    red(denied_kinds=["Deployment.*"])
    refused = pytest.raises(sol_ex.SolException, match=r"Deployment.apps red-1/web: .*\[k8s_cr:red\] denied_kinds")
    with requested_by(role, "blue" if role == "admin" else "red"), refused:
        blue.heal()


@pytest.mark.parametrize("option", ["adopt-existing", "force-conflicts", "delete-guests"])
@pytest.mark.parametrize("role", ["member", "admin", "operator"])
def test_only_an_admin_may_set_an_option_that_reaches_what_is_of_others(
    cluster: FakeApi, tmp_path: Path, option: str, role: str
) -> None:
    """Or whom the operator gives the rule."""
    blue = Instance(cluster, tmp_path, [RED_1, web()])
    name = f"os_nfv_orchestration_api_v2:k8s_cr:{option.replace('-', '_')}"
    if role == "operator":
        policy._ENFORCER.set_rules(oslo_policy.Rules.from_dict({name: "role:operator"}), overwrite=False)
    set_policy(allow_delete_guests=True)
    with requested_by("admin"):
        blue.instantiate()
    with requested_by(role):
        cluster.requests.clear()
        if role == "member":
            with pytest.raises(sol_ex.SolException, match=rf"^additionalParams {option}: .*{name}") as refused:
                blue.terminate(**{option: True})
            assert refused.value.status == 403
            assert cluster.requests.writes == []
        else:
            blue.terminate(**{option: True})


def test_not_even_an_admin_deletes_guests_by_default(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(0)])
    with requested_by("admin"):
        blue.instantiate()
        with pytest.raises(sol_ex.SolException, match=r"^additionalParams delete-guests: .*\[k8s_cr\] allow_delete_guests"):
            blue.terminate(**{"delete-guests": True})
        blue.terminate()


def foreign_namespace(cluster: FakeApi) -> None:
    """One that a user has made."""
    cluster.put(RED_1)


def namespace_of_another(cluster: FakeApi) -> None:
    """One that an instance of nobody knows which project has made."""
    EngineInstance(cluster.url, GREEN).reconcile([RED_1])


@pytest.mark.usefixtures("tenant")
@pytest.mark.parametrize("brings", [True, False], ids=["brought", "named"])
@pytest.mark.parametrize("make", [foreign_namespace, namespace_of_another])
def test_a_tenant_has_nothing_in_a_namespace_of_others_unless_the_operator_gives_it(
    cluster: FakeApi, tmp_path: Path, red: Callable[..., None], make: Callable[[FakeApi], None], brings: bool
) -> None:
    make(cluster)
    brought = [RED_1] if brings and make is namespace_of_another else []
    blue = Instance(cluster, tmp_path, [*brought, web()])
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"red-1.*: its namespace is none that the operator gives the project") as no:
        blue.instantiate()
    assert no.value.status == 403 and cluster.requests.writes == []
    red(allowed_namespaces=["red-*"])
    blue.instantiate()


@pytest.mark.usefixtures("tenant")
def test_a_tenant_names_no_namespace_that_others_may_make(cluster: FakeApi, tmp_path: Path) -> None:
    """Objects that wait would be in it as soon as others have made it."""
    with pytest.raises(sol_ex.SolException, match=r"web: its namespace does not exist, and the package does not bring it"):
        Instance(cluster, tmp_path, [web()]).instantiate()
    assert cluster.requests.writes == []


@pytest.mark.usefixtures("tenant")
def test_a_tenant_joins_no_namespace_that_others_make_meanwhile(cluster: FakeApi, tmp_path: Path) -> None:
    is_made = threading.Event()
    cluster.fail(faults.held(end=is_made), method="PATCH", path="/namespaces/red-1$")
    blue = Instance(cluster, tmp_path, [RED_1, web()])

    def make() -> None:
        wait_for(cluster, lambda: bool(cluster.requests.select("PATCH", "/namespaces/red-1")))
        EngineInstance(cluster.url, GREEN).reconcile([RED_1])
        is_made.set()

    with ThreadPoolExecutor() as pool:
        made = pool.submit(make)
        with pytest.raises(sol_ex.SolException, match="another VNF instance has made it while this operation ran") as refused:
            blue.instantiate()
        made.result()
    assert refused.value.status == 403
    assert cluster.find("Deployment", "red-1", "web") is None
    assert blue.inst.id not in str(labels(cluster.get("Namespace", None, "red-1")))


@pytest.mark.usefixtures("tenant")
def test_a_tenant_makes_no_namespace_that_the_operator_gives_others(
    cluster: FakeApi, tmp_path: Path, red: Callable[..., None]
) -> None:
    red(allowed_namespaces=["red-*"])
    blue = Instance(cluster, tmp_path, [RED_1, web()])
    with requested_by("member", "blue"), pytest.raises(sol_ex.SolException, match="none that the operator gives the project"):
        blue.instantiate()
    blue.instantiate()


@pytest.mark.usefixtures("tenant")
def test_a_tenant_may_use_the_namespace_that_an_instance_of_its_project_has_made(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path / "blue", [RED_1, web()])
    blue.instantiate()
    for name in ("vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion"):
        setattr(blue.inst, name, "vnfd")
    blue.inst.instantiationState = "INSTANTIATED"
    admin = context.get_admin_context()
    blue.inst.create(admin)
    try:
        second = web()
        second["metadata"]["name"] = "second"
        other = Instance(cluster, tmp_path / "other", [RED_1, second], vdus={"Web": "second"})
        other.inst.id = GREEN
        with requested_by("member", "blue"), pytest.raises(sol_ex.SolException, match="none that the operator gives"):
            other.instantiate()
        other.instantiate()
        blue.heal()
    finally:
        blue.inst.delete(admin)


@pytest.mark.usefixtures("tenant")
def test_a_tenant_never_has_objects_beside_the_inventories(
    cluster: FakeApi, tmp_path: Path, red: Callable[..., None]
) -> None:
    red(allowed_namespaces=["*"])
    with pytest.raises(sol_ex.SolException, match=r"Deployment.apps default/web: its namespace holds the inventories"):
        Instance(cluster, tmp_path, [deployment(0)]).instantiate()


@pytest.mark.usefixtures("tenant")
def test_a_project_may_have_more_kinds_than_others(cluster: FakeApi, tmp_path: Path, red: Callable[..., None]) -> None:
    blue = Instance(cluster, tmp_path, [RED_1, web(), obj("scheduling.k8s.io/v1", "PriorityClass", "p", value=1)])
    with pytest.raises(sol_ex.SolException, match=r"PriorityClass.* p: its kind is one of the whole cluster"):
        blue.instantiate()
    red(tenant_kinds=["PriorityClass.*"])
    blue.instantiate()


@pytest.mark.usefixtures("tenant")
@pytest.mark.parametrize("whose", ["a user's", "another instance has left it"])
def test_a_tenant_never_adopts_a_crd(cluster: FakeApi, tmp_path: Path, whose: str) -> None:
    """Not even one who may set adopt-existing."""
    rule = {"os_nfv_orchestration_api_v2:k8s_cr:adopt_existing": "role:member", permitted.UNRESTRICTED: "is_admin:True"}
    policy._ENFORCER.set_rules(oslo_policy.Rules.from_dict(rule), overwrite=False)
    if whose == "a user's":
        cluster.put(crontab_crd())
    else:
        green = EngineInstance(cluster.url, GREEN)
        green.reconcile([crontab_crd()])
        cluster.put(crontab("users"))
        green.terminate()
    before = cluster.get("CustomResourceDefinition", None, "crontabs.stable.example.com")
    changed = crontab_crd()
    changed["spec"]["names"]["singular"] = "mine"
    blue = Instance(cluster, tmp_path, [RED_1, web(), changed])
    with pytest.raises(sol_ex.SolException, match=r"crontabs.stable.example.com exists already .*only admins may adopt a CRD"):
        blue.instantiate(**{"adopt-existing": True})
    assert cluster.get("CustomResourceDefinition", None, "crontabs.stable.example.com") == before


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
    content = [config_map("a", "red-1")]
    monkeypatch.setattr(desired, "RemoteManifests", lambda _: lambda url: json.dumps(content[-1]).encode())
    files = {"lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml", "https://example.com/a.json"]}
    with requested_by("member"):
        blue = Instance(cluster, tmp_path / "old", [RED_1, web()])
        blue.instantiate(**files)
        before = blue.inst.obj_clone()
        content.append(hook())
        with pytest.raises(sol_ex.SolException, match="restrict_tenants"):
            blue.change(make_vnfd(tmp_path / "new", [RED_1, web()]), **files)
        blue.inst = before
        with pytest.raises(sol_ex.SolException, match="restrict_tenants"):
            blue.roll_back_change()
        assert cluster.names("ValidatingWebhookConfiguration") == []
        content.append(config_map("a", "red-1"))
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
