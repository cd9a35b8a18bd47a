# SPDX-License-Identifier: Apache-2.0
"""Templates of Machines whose content a package changes under the same name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.capi.contract import CONTROL_PLANE_GROUP
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.vnf import rotation
from k8s_cr_driver.vnf.rotation import CONTENT
from tests.capi import clusters
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import job, obj
from tests.lcm.instance import Instance, instantiated

INFRASTRUCTURE, BOOTSTRAP = "infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"


def package(size: str = "small", user: str = "admin") -> list[Object]:
    """A control plane, and workers of another machine template and of a bootstrap template."""
    control_plane = {"infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "DevMachineTemplate", "name": "web"}}
    workers = {
        "infrastructureRef": {"apiVersion": f"{INFRASTRUCTURE}/v1", "kind": "DevMachineTemplate", "name": "workers"},
        "bootstrap": {"configRef": {"apiGroup": BOOTSTRAP, "kind": "KubeadmConfigTemplate", "name": "workers"}},
    }
    return [
        obj(f"{CONTROL_PLANE_GROUP}/v1", "KubeadmControlPlane", "web", spec={"machineTemplate": {"spec": control_plane}}),
        obj("cluster.x-k8s.io/v1", "MachineDeployment", "workers", spec={"replicas": 0, "template": {"spec": workers}}),
        obj(f"{INFRASTRUCTURE}/v1", "DevMachineTemplate", "web", spec={"template": {"spec": {"size": "small"}}}),
        obj(f"{INFRASTRUCTURE}/v1", "DevMachineTemplate", "workers", spec={"template": {"spec": {"size": size}}}),
        obj(f"{BOOTSTRAP}/v1", "KubeadmConfigTemplate", "workers", spec={"template": {"spec": {"user": user}}}),
    ]


@pytest.fixture
def blue(api: FakeApi, tmp_path: Path) -> Instance:
    core = "cluster.x-k8s.io"
    for group, kinds in {
        core: ("Machine", "MachineSet", "MachineDeployment"),
        INFRASTRUCTURE: ("DevMachineTemplate",),
        BOOTSTRAP: ("KubeadmConfigTemplate",),
    }.items():
        for kind in kinds:
            api.put(clusters.crd(GroupKind(group, kind)))
    api.put(clusters.crd(clusters.CONTROL_PLANES))
    return instantiated(api, tmp_path / "blue", package())


def references(api: FakeApi) -> tuple[str, str, str]:
    """The names of the templates: of the control plane, of the workers, of the workers' bootstrap."""
    control_plane = api.get("KubeadmControlPlane", "default", "web")["spec"]["machineTemplate"]["spec"]
    workers = api.get("MachineDeployment", "default", "workers")["spec"]["template"]["spec"]
    machines = (control_plane["infrastructureRef"]["name"], workers["infrastructureRef"]["name"])
    return (*machines, workers["bootstrap"]["configRef"]["name"])


def templates(api: FakeApi) -> list[str]:
    return [*api.names("DevMachineTemplate"), *api.names("KubeadmConfigTemplate")]


def after_workers(name: str) -> Object:
    """A ConfigMap that is applied when the workers and their machine template are there."""
    config = obj("v1", "ConfigMap", name, "default", data={})
    needed = (("cluster.x-k8s.io", "MachineDeployment"), (INFRASTRUCTURE, "DevMachineTemplate"))
    references = [f"{group}/namespaces/default/{kind}/workers" for group, kind in needed]
    config["metadata"]["annotations"] = {DEPENDS_ON: ", ".join(references)}
    return config


def test_a_new_instance_has_the_names_of_its_package(api: FakeApi, blue: Instance) -> None:
    assert references(api) == ("web", "workers", "workers")
    blue.heal()
    assert templates(api) == ["web", "workers", "workers"]


def test_a_changed_machine_template_gets_a_name_of_its_own_and_the_former_is_removed(api: FakeApi, blue: Instance) -> None:
    blue.change(blue.package(package("big")))
    control_plane, workers, bootstrap = references(api)
    assert (control_plane, bootstrap) == ("web", "workers")
    assert workers.startswith("workers-")
    assert templates(api) == ["web", workers, "workers"]
    assert api.get("DevMachineTemplate", "default", workers)["spec"]["template"]["spec"] == {"size": "big"}


def test_what_waits_for_a_changed_template_waits_for_it_under_its_new_name(api: FakeApi, blue: Instance) -> None:
    blue.change(blue.package([*package("big"), after_workers("last")]))
    needed = api.get("ConfigMap", "default", "last")["metadata"]["annotations"][DEPENDS_ON].split(",")
    workers = references(api)[1]
    assert needed == [
        "cluster.x-k8s.io/namespaces/default/MachineDeployment/workers",
        f"{INFRASTRUCTURE}/namespaces/default/DevMachineTemplate/{workers}",
    ]
    writes = api.requests.select("PATCH", when=lambda request: "dryRun" not in request.query)
    created = [request.path.rpartition("/")[2] for request in writes]
    assert created.index(workers) < created.index("last")


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_template_is_not_changed_in_place_because_it_was_not_found_once(
    api: FakeApi, blue: Instance, is_listed: bool
) -> None:
    """A load balancer without an API server responds 404 to every path; one that starts may forbid what it allows later."""
    fault = faults.page_not_found() if is_listed else faults.status(403, "Forbidden")
    api.fail(fault, method="GET", path="/kubeadmconfigtemplates", when=lambda request: "watch" not in str(request.query))
    new = blue.package(package(user="root"))
    if is_listed:
        blue.change(new)
        assert references(api)[2].startswith("workers-")
    else:
        with pytest.raises(sol_ex.SolException, match="kubeadmconfigtemplates: 403"):
            blue.change(new)
        former = api.get("KubeadmConfigTemplate", "default", "workers")
        assert former["spec"]["template"]["spec"] == {"user": "admin"}


def test_a_changed_bootstrap_template_gets_one_too(api: FakeApi, blue: Instance) -> None:
    blue.change(blue.package(package(user="root")))
    control_plane, workers, bootstrap = references(api)
    assert (control_plane, workers) == ("web", "workers")
    assert templates(api) == ["web", "workers", bootstrap]
    assert bootstrap.startswith("workers-")


def test_a_name_stays_as_long_as_the_content_does(api: FakeApi, blue: Instance) -> None:
    blue.vnfd = blue.package(package("big"))
    blue.change(blue.vnfd)
    changed = references(api)
    blue.change(blue.vnfd)
    blue.heal()
    assert references(api) == changed
    blue.change(blue.package(package("bigger")))
    assert references(api)[1] not in ("workers", changed[1])
    assert len(templates(api)) == 3


def test_a_heal_creates_a_deleted_template_under_the_name_that_is_used(api: FakeApi, blue: Instance) -> None:
    blue.vnfd = blue.package(package("big"), vdus={"Web": "web", "Workers": "workers"})
    blue.change(blue.vnfd)
    before, used = templates(api), references(api)[1]
    api.delete("DevMachineTemplate", "default", used)
    blue.heal()
    assert templates(api) == before


def test_a_rollback_returns_to_the_former_template(api: FakeApi, blue: Instance) -> None:
    stored = blue.inst.obj_clone()
    last = after_workers("last")
    api.fail(faults.status(400, "BadRequest", "no"), path="/configmaps/last", times=9)
    with pytest.raises(sol_ex.SolException, match="default/last: no"):
        blue.change(blue.package([*package("big"), last]))
    changed = references(api)[1]
    assert changed in templates(api) and templates(api).count("workers") == 2, "the former one stays until the end"
    blue.inst = stored
    blue.roll_back_change()
    assert references(api) == ("web", "workers", "workers")
    assert templates(api) == ["web", "workers", "workers"]


def test_a_rollback_after_the_end_of_the_change_creates_the_former_template_again(api: FakeApi, blue: Instance) -> None:
    stored = blue.inst.obj_clone()
    blue.change(blue.package(package("big")))
    blue.inst = stored
    blue.roll_back_change()
    control_plane, workers, bootstrap = references(api)
    assert (control_plane, bootstrap) == ("web", "workers")
    assert api.get("DevMachineTemplate", "default", workers)["spec"]["template"]["spec"] == {"size": "small"}
    assert len(templates(api)) == 3


def test_of_a_template_that_was_applied_without_a_digest_the_fields_are_compared(api: FakeApi, blue: Instance) -> None:
    def without_digest(live: Object) -> None:
        del live["metadata"]["annotations"][CONTENT]
        live["spec"]["template"]["spec"]["default"] = True

    api.edit("DevMachineTemplate", "default", "workers", without_digest)
    blue.change(blue.vnfd)
    assert references(api)[1] == "workers"
    api.edit("DevMachineTemplate", "default", "workers", without_digest)
    blue.change(blue.package(package("big")))
    assert references(api)[1] != "workers"


def test_a_template_that_has_lost_its_label_is_known_by_its_name(api: FakeApi, blue: Instance) -> None:
    """As after `kubectl replace`: a changed one gets a name of its own, and one that has not changed keeps the one it has."""

    def lose_label(kind: str, name: str) -> None:
        api.edit(kind, "default", name, lambda live: live["metadata"].update(labels={}))

    lose_label("KubeadmConfigTemplate", "workers")
    changed = blue.package(package(user="root"))
    blue.change(changed)
    used = references(api)[2]
    assert used.startswith("workers-")
    lose_label("KubeadmConfigTemplate", used)
    blue.change(changed)
    assert references(api)[2] == used
    assert templates(api) == ["web", "workers", used]


def test_a_read_of_a_template_that_fails_for_a_moment_is_repeated(api: FakeApi, blue: Instance) -> None:
    blue.change(blue.package(package("big", "root")))
    api.fail(faults.status(503, "ServiceUnavailable", "a moment"), path="/kubeadmconfigtemplates/workers", times=1)
    blue.change(blue.package(package("bigger", "nobody")))
    _, workers, bootstrap = references(api)
    assert workers.count("-") == bootstrap.count("-") == 1


def test_a_template_of_somebody_else_is_not_taken_for_a_former_one(api: FakeApi, blue: Instance) -> None:
    api.put(obj(f"{INFRASTRUCTURE}/v1", "DevMachineTemplate", "theirs", "default", spec={"template": {}}))
    theirs = obj(f"{INFRASTRUCTURE}/v1", "DevMachineTemplate", "theirs", spec={"template": {"spec": {}}})
    with pytest.raises(sol_ex.SolException, match="default/theirs exists already"):
        blue.change(blue.package([*package(), theirs]))


def test_a_template_that_is_to_be_replaced_keeps_its_name(api: FakeApi, blue: Instance) -> None:
    new = package("big")
    new[3]["metadata"]["annotations"] = {"k8s-cr-driver/replace": "true"}
    blue.change(blue.package(new))
    assert references(api)[1] == "workers"
    assert api.get("DevMachineTemplate", "default", "workers")["spec"]["template"]["spec"] == {"size": "big"}


def of_a_class(size: str = "small", **references: str) -> list[Object]:
    """A Cluster, its ClusterClass, the machine template that this one names, and a VDU."""
    reference = {"apiVersion": f"{INFRASTRUCTURE}/v1", "kind": "DevMachineTemplate", "name": "web"}
    return [
        obj("cluster.x-k8s.io/v1", "Cluster", "web", spec={"topology": references or {"classRef": {"name": "quick"}}}),
        obj("cluster.x-k8s.io/v1", "ClusterClass", "quick", spec={"controlPlane": {"templateRef": reference}}),
        obj(f"{INFRASTRUCTURE}/v1", "DevMachineTemplate", "web", spec={"template": {"spec": {"size": size}}}),
        obj(f"{CONTROL_PLANE_GROUP}/v1", "KubeadmControlPlane", "web", spec={"replicas": 1}),
    ]


def with_class(api: FakeApi, folder: Path, *manifests: Object) -> Instance:
    for kind in ("Cluster", "ClusterClass", "Machine"):
        api.put(clusters.crd(GroupKind("cluster.x-k8s.io", kind)))
    for other in (clusters.CONTROL_PLANES, GroupKind(INFRASTRUCTURE, "DevMachineTemplate")):
        api.put(clusters.crd(other))
    clusters.serve_clusters(api)
    return instantiated(api, folder / "red", list(manifests))


@pytest.mark.parametrize("references", [{}, {"class": "quick"}])
def test_a_class_whose_template_has_changed_gets_a_name_that_its_cluster_takes(
    api: FakeApi, tmp_path: Path, references: dict[str, str]
) -> None:
    """Cluster API reports of a Cluster which generation of it was applied, and not which one of its class."""
    red = with_class(api, tmp_path, *of_a_class(**references))
    stored = red.inst.obj_clone()
    assert named(api) == ["quick", "quick", "web"]
    red.change(red.package(of_a_class("big", **references)))
    class_, used, template = named(api)
    assert class_ == used != "quick" and template != "web"
    assert api.get("ClusterClass", "default", used)["spec"]["controlPlane"]["templateRef"]["name"] == template
    red.change(red.package(of_a_class("big", **references)))
    assert named(api) == [class_, used, template]
    red.inst = stored
    red.roll_back_change()
    assert api.get("DevMachineTemplate", "default", named(api)[2])["spec"]["template"]["spec"] == {"size": "small"}


@pytest.mark.parametrize("kind", ["OpenStackMachineTemplate", "OpenStackClusterTemplate", "OtherControlPlaneTemplate"])
def test_a_changed_template_of_any_kind_reaches_the_cluster_of_a_class(api: FakeApi, tmp_path: Path, kind: str) -> None:
    """Webhooks refuse a change of each of them."""

    def with_template(size: str) -> list[Object]:
        cluster, class_, _, control_plane = of_a_class()
        reference = {"apiVersion": f"{INFRASTRUCTURE}/v1", "kind": kind, "name": "web"}
        class_["spec"] = {"infrastructure": {"templateRef": reference}}
        template = obj(f"{INFRASTRUCTURE}/v1", kind, "web", spec={"template": {"spec": {"size": size}}})
        return [cluster, class_, template, control_plane]

    api.put(clusters.crd(GroupKind(INFRASTRUCTURE, kind)))
    red = with_class(api, tmp_path, *with_template("small"))
    red.change(red.package(with_template("big")))
    class_, used = named(api)
    (template,) = api.names(kind)
    assert class_ == used != "quick" and template != "web"
    assert api.get("ClusterClass", "default", used)["spec"]["infrastructure"]["templateRef"]["name"] == template


def named(api: FakeApi) -> list[str]:
    """The one ClusterClass, the class of the Cluster, and the one machine template."""
    topology = api.get("Cluster", "default", "web")["spec"]["topology"]
    used = topology.get("class") or topology["classRef"]["name"]
    return [*api.names("ClusterClass"), used, *api.names("DevMachineTemplate")]


def test_a_class_that_no_cluster_of_the_package_has_keeps_its_name(api: FakeApi, tmp_path: Path) -> None:
    red = with_class(api, tmp_path, *of_a_class()[1:])
    red.change(red.package(of_a_class("big")[1:]))
    assert api.names("ClusterClass") == ["quick"]
    assert api.names("DevMachineTemplate") != ["web"]


PAUSES = [{"spec": {"paused": True}}, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}]


@pytest.mark.parametrize("pause", PAUSES)
def test_a_template_of_workers_that_the_package_pauses_is_not_changed(api: FakeApi, blue: Instance, pause: Object) -> None:
    objects = package("big")
    for part, values in pause.items():
        objects[1][part] |= values
    with pytest.raises(sol_ex.SolException, match=r"MachineDeployment.* default/workers: .*end the pause in this change"):
        blue.change(blue.package(objects))
    assert templates(api) == ["web", "workers", "workers"] and references(api) == ("web", "workers", "workers")
    del objects[3:]
    blue.change(blue.package([*objects, *package()[3:]]))
    assert api.get("MachineDeployment", "default", "workers")["spec"].get("paused") == pause.get("spec", {}).get("paused")


def test_a_finished_job_that_waits_for_a_renamed_template_does_not_run_again(api: FakeApi, blue: Instance) -> None:
    def with_job(size: str) -> list[Object]:
        reference = f"{INFRASTRUCTURE}/namespaces/default/DevMachineTemplate/workers"
        return [*package(size), job("migrate", "c:1", **{DEPENDS_ON: reference})]

    controllers.run_workloads(api)
    blue.change(blue.package(with_job("small")))
    api.delete("Job", "default", "migrate")
    blue.change(blue.package(with_job("big")))
    assert references(api)[1] != "workers" and api.names("Job", "default") == []


def test_each_object_of_a_set_is_searched_for_references_a_fixed_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    walk = rotation.walk

    def counted(value: Object) -> Iterator[Any]:
        searched.append(value["metadata"]["name"])
        return walk(value)

    def template(number: int) -> Object:
        spec = {"template": {"spec": {"flavor": str(number)}}}
        return obj("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate", f"t-{number}", "default", spec=spec)

    class Lives:
        def labelled(self, _: Object) -> dict[str, Object]:
            return {}

        def named(self, _: Object, name: str) -> Object | None:
            return {**template(-1), "metadata": {"name": name}}

    templates = [template(number) for number in range(100)]
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate"}
    users = [
        obj("example.com/v1", "Tab", f"u-{number}", "default", spec={"ref": {**reference, "name": f"t-{number}"}})
        for number in range(100)
    ]
    monkeypatch.setattr(rotation, "walk", counted)
    rotation.rotate([*templates, *users], Lives())
    assert all(one["metadata"]["name"] == user["spec"]["ref"]["name"] for one, user in zip(templates, users, strict=True))
    assert all(one["metadata"]["name"].startswith(f"t-{number}-") for number, one in enumerate(templates))
    assert len(searched) < 5 * len([*templates, *users])
