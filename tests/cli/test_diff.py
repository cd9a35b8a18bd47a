# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr diff`: what an operation would do, without doing it."""

import copy
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.objects.keys import GroupKind, Object
from tests.capi import clusters
from tests.cli.packages import write_package
from tests.cli.tool import Tool
from tests.fake_api import FakeApi, controllers, errors, faults
from tests.instance import BLUE, GREEN, Instance, config_map, crontab, crontab_crd, deployment, job, obj, replaced, state

CRDS = "CustomResourceDefinition.apiextensions.k8s.io crontabs.stable.example.com"


class Differ:
    """Compares packages with a cluster, and makes sure that this changes nothing."""

    def __init__(self, api: FakeApi, tool: Tool, folder: Path) -> None:
        self._api, self._tool, self._folder = api, tool, folder

    def text(self, objects: list[Object], *arguments: str, code: int = 1, **package: Any) -> str:
        return self._run(objects, arguments, package, lambda *line: self._tool.run(*line, code=code).output)

    def verdicts(self, objects: list[Object], *arguments: str, code: int = 1, **package: Any) -> dict[str, Any]:
        reported = self._run(objects, arguments, package, lambda *line: self._tool.json(*line, code=code))
        return {one["object"]: one for one in reported}

    def _run(self, objects: list[Object], arguments: tuple[str, ...], package: dict[str, Any], run: Any) -> Any:
        folder = write_package(self._folder, copy.deepcopy(objects), **package)
        before = state(self._api)
        result = run("diff", str(folder), *arguments)
        assert state(self._api) == before
        return result


@pytest.fixture
def differ(api: FakeApi, tool: Tool, tmp_path: Path) -> Differ:
    return Differ(api, tool, tmp_path / "package")


def words(reported: dict[str, Any]) -> dict[str, str]:
    return {name: one["verdict"] for name, one in reported.items()}


def test_a_new_instance_is_made_with_crd_and_namespace_of_its_own(api: FakeApi, differ: Differ) -> None:
    new = [obj("v1", "Namespace", "blue"), config_map("a", "blue"), crontab("one", "blue"), crontab_crd()]
    reported = differ.verdicts(new)
    assert set(words(reported).values()) == {"created"}
    assert len(reported) == 4
    assert "CustomResourceDefinition" in reported["CronTab.stable.example.com blue/one"]["message"]


def test_a_custom_resource_that_its_new_crd_forbids_is_reported(differ: Differ) -> None:
    bad = obj("stable.example.com/v1", "CronTab", "one", spec={"cronSpek": "x"})
    assert "did you mean cronSpec" in differ.text([crontab_crd(), bad])


def test_every_write_is_a_dry_run(api: FakeApi, differ: Differ) -> None:
    Instance(api.url).reconcile([config_map("a")])
    api.requests.clear()
    differ.verdicts([config_map("a", a="2"), config_map("b")], "--instance", BLUE)
    assert {one.query.get("dryRun") for one in api.requests.writes} == {"All"}


def test_changed_pruned_unchanged(api: FakeApi, differ: Differ) -> None:
    Instance(api.url).reconcile([config_map("same"), config_map("changed", a="1", gone="1"), config_map("pruned")])
    reported = differ.verdicts([config_map("same"), config_map("changed", a="2")], "--instance", BLUE)
    assert words(reported) == {
        "ConfigMap default/same": "unchanged",
        "ConfigMap default/changed": "changed",
        "ConfigMap default/pruned": "deleted",
    }
    assert reported["ConfigMap default/changed"]["changes"] == [
        {"field": "data.a", "before": "1", "after": "2"},
        {"field": "data.gone", "before": "1", "after": None},
    ]


def test_a_namespace_and_a_crd_that_have_lost_their_label_are_announced(api: FakeApi, differ: Differ) -> None:
    Instance(api.url).reconcile([obj("v1", "Namespace", "home"), crontab_crd(), config_map("same")])
    for kind, name in (("Namespace", "home"), ("CustomResourceDefinition", "crontabs.stable.example.com")):
        replaced(api, kind, "", name)
    reported = words(differ.verdicts([config_map("same")], "--instance", BLUE))
    assert sorted(reported.values()) == ["deleted", "deleted", "unchanged"]


def test_no_differences_end_with_0(api: FakeApi, differ: Differ) -> None:
    Instance(api.url).reconcile([config_map("a"), crontab_crd(), crontab("one")])
    assert differ.text([config_map("a"), crontab_crd(), crontab("one")], "--instance", BLUE, code=0) == "3 unchanged\n"


def test_values_of_a_secret_and_of_a_field_that_is_called_a_password_are_not_shown(api: FakeApi, differ: Differ) -> None:
    secret = obj("v1", "Secret", "door", "default", data={"key": "Y2FuYXJ5MQ=="})
    Instance(api.url).reconcile([secret, config_map("a", password="canary1", user="me")])
    changed = {**secret, "data": {"key": "Y2FuYXJ5Mg==", "new": "Y2FuYXJ5Mw=="}}
    text = differ.text([changed, config_map("a", password="canary2", user="you")], "--instance", BLUE)
    for shown in ('key: "(hidden)" -> "(hidden)"', 'new: (absent) -> "(hidden)"', 'password: "(hidden)" -> "(hidden)"'):
        assert f"data.{shown}" in text
    assert 'data.user: "me" -> "you"' in text
    assert "Y2FuYXJ5" not in text and "canary" not in text


def test_a_variable_of_an_environment_is_known_by_name_or_key(api: FakeApi, differ: Differ) -> None:
    def tab(value: str) -> Object:
        made = crontab("tab")
        made["spec"]["env"] = [{"key": "DB_PASSWORD", "value": value}]
        return made

    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = crontab_crd()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = free
    api.put(crd)
    Instance(api.url).reconcile([tab("canary1")])
    text = differ.text([tab("canary2")], "--instance", BLUE)
    assert "env[DB_PASSWORD].value" in text and "canary" not in text


def test_a_conflict_names_manager_and_field(api: FakeApi, differ: Differ) -> None:
    Instance(api.url).reconcile([config_map("a", a="1")])
    api.edit("ConfigMap", "default", "a", lambda live: live["data"].update(a="3"), manager="kubectl-edit")
    (reported,) = differ.verdicts([config_map("a", a="2")], "--instance", BLUE).values()
    assert reported["verdict"] == "conflict"
    assert "kubectl-edit" in reported["message"]
    assert ".data.a" in reported["message"]


def test_objects_of_others_are_refused(api: FakeApi, differ: Differ) -> None:
    api.put(config_map("somebodys"))
    Instance(api.url, GREEN).reconcile([crontab_crd(), crontab("greens")])
    reported = differ.verdicts([config_map("somebodys"), crontab_crd(), crontab("greens")])
    assert reported["ConfigMap default/somebodys"]["verdict"] == "refused"
    assert "exists already" in reported["ConfigMap default/somebodys"]["message"]
    assert "another VNF instance" in reported["CronTab.stable.example.com default/greens"]["message"]
    assert reported[CRDS]["verdict"] == "changed"


def test_an_immutable_field_is_refused_or_the_object_replaced_and_a_default_is_changed(api: FakeApi, differ: Differ) -> None:
    controllers.run_workloads(api)
    derived = deployment("derived")
    Instance(api.url).reconcile([deployment(), job("once", "a:1"), derived])
    derived = {**derived, "spec": {**derived["spec"], "strategy": {"type": "Recreate"}}}
    reported = differ.verdicts([deployment(app="other"), job("once", "a:2"), derived], "--instance", BLUE)
    assert "k8s-cr-driver/replace" in reported["Deployment.apps default/web"]["message"]
    assert reported["Deployment.apps default/derived"]["verdict"] == "changed"
    replaced = reported["Job.batch default/once"]
    assert replaced["verdict"] == "replaced"
    assert {"field": "spec.template.spec.containers[c].image", "before": "a:1", "after": "a:2"} in replaced["changes"]


def test_the_counts_of_vdus_are_kept(api: FakeApi, differ: Differ) -> None:
    controllers.run_workloads(api)
    web, other = deployment(), deployment("other")
    for one in (web, other):
        one["spec"]["replicas"] = 3
    Instance(api.url).reconcile([web, other])
    for one in (web, other):
        one["spec"]["replicas"] = 1
    reported = differ.verdicts([web, other], "--instance", BLUE, vdus={"Web": "web"})
    assert words(reported) == {"Deployment.apps default/web": "unchanged", "Deployment.apps default/other": "changed"}


def test_the_counts_of_vdus_that_are_parts_of_one_object_are_kept(api: FakeApi, differ: Differ) -> None:
    clusters.run_topology(api)
    Instance(api.url).reconcile([clusters.cluster(3, **{"md-0": 5, "md-1": 1})])
    wanted = clusters.cluster(1, **{"md-0": 2, "md-1": 2})
    reported = differ.verdicts([wanted], "--instance", BLUE, vdus={"Web": "md-0", "ControlPlane": "controlPlane"})
    [changed] = [one["changes"] for one in reported.values()]
    assert [(one["before"], one["after"]) for one in changed] == [(1, 2)]


def test_a_changed_template_of_machines_is_another_object(api: FakeApi, differ: Differ) -> None:
    group, kind = "infrastructure.cluster.x-k8s.io", "DevMachineTemplate"
    for one in (GroupKind(group, kind), clusters.DEPLOYMENTS):
        api.put(clusters.crd(one))
    before, after = (obj(f"{group}/v1", kind, "a", "default", spec={"size": size}) for size in (1, 2))
    template = {"spec": {"infrastructureRef": {"apiGroup": group, "kind": kind, "name": "a"}}}
    workers = obj("cluster.x-k8s.io/v1", "MachineDeployment", "workers", "default", spec={"template": template})
    Instance(api.url).reconcile([before, workers])
    reported = words(differ.verdicts([after, workers], "--instance", BLUE))
    assert sorted(reported.values()) == ["changed", "created", "deleted"]
    assert reported[f"{kind}.{group} default/a"] == "deleted"


def test_fields_that_the_package_s_crd_adds_are_no_error(api: FakeApi, differ: Differ) -> None:
    Instance(api.url).reconcile([crontab_crd(), crontab("one")])
    crd, one = crontab_crd(), crontab("one")
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["image"] = {"type": "string"}
    one["spec"]["image"] = "a:1"
    reported = differ.verdicts([crd, one], "--instance", BLUE)
    assert words(reported) == {CRDS: "changed", "CronTab.stable.example.com default/one": "changed"}
    assert reported["CronTab.stable.example.com default/one"]["changes"] == [
        {"field": "spec.image", "before": None, "after": "a:1"}
    ]


def test_what_others_use_is_released(api: FakeApi, differ: Differ) -> None:
    api.put(config_map("theirs", b="1"))
    Instance(api.url, BLUE, adopt=True).reconcile([obj("v1", "Namespace", "common"), config_map("theirs"), config_map("own")])
    Instance(api.url, GREEN).reconcile([obj("v1", "Namespace", "common")])
    reported = differ.verdicts([config_map("own")], "--instance", BLUE)
    assert words(reported)["Namespace common"] == "released"
    assert words(reported)["ConfigMap default/theirs"] == "released"


def test_the_guests_and_the_objects_for_which_a_namespace_stays_are_named(api: FakeApi, differ: Differ) -> None:
    guest = obj("v1", "Pod", "guest", "a", spec={"containers": [{"name": "c", "image": "i"}]})
    spaces = [obj("v1", "Namespace", name) for name in "abc"]
    Instance(api.url).reconcile([*spaces, config_map("own", "b")])
    api.put(guest)
    for number in range(4):
        api.put(config_map(f"theirs-{number}", "c"))
    shown = differ.verdicts([config_map("own", "b")], "--instance", BLUE)
    found = {name.removeprefix("Namespace "): (one["verdict"], one["message"]) for name, one in shown.items()}
    del found["ConfigMap b/own"]
    assert found == {
        "a": ("released", "it holds objects of others: Pod a/guest"),
        "b": ("released", "it holds objects of this instance: ConfigMap b/own"),
        "c": ("deleted", ""),
    }


def test_a_missing_parameter_and_an_unknown_kind_are_errors(differ: Differ) -> None:
    assert "parameters.A: is missing" in differ.text([config_map("a", a="${A}")], parameters={"A": {"type": "string"}})
    assert "unknown kind: stable.example.com/v1 CronTab" in differ.text([crontab("one")])


def test_a_kind_whose_api_server_is_down_is_not_called_unknown(api: FakeApi, differ: Differ) -> None:
    api.knobs.down.add(("policy", "v1"))
    reported = differ.text([obj("policy/v1", "PodDisruptionBudget", "a", spec={})], code=3)
    assert "the server of policy/v1 does not respond" in reported


@pytest.mark.parametrize("command", ["diff", "tree"])
@pytest.mark.parametrize(("arguments", "expected"), [([], "theirs"), (["--namespace", "blue"], "blue")])
def test_the_namespace_is_that_of_the_request_in_the_package(
    api: FakeApi, tool: Tool, tmp_path: Path, command: str, arguments: list[str], expected: str
) -> None:
    for name in ("theirs", "blue"):
        api.put(obj("v1", "Namespace", name))
    package = write_package(tmp_path / "p", [config_map("a", "")])
    (package / "request.json").write_text('{"additionalParams": {"namespace": "theirs"}}')
    found = tool.json(command, str(package), *arguments, code=command == "diff")
    assert [one["object"] for one in found] == [f"ConfigMap {expected}/a"]


def test_a_namespace_that_nobody_brings_is_refused(differ: Differ) -> None:
    (reported,) = differ.verdicts([config_map("a", "nowhere")]).values()
    assert reported["verdict"] == "refused"
    assert reported["message"].endswith("Add the namespace to the package, or create it first.")


@pytest.mark.parametrize(
    ("missing", "remedy"),
    [
        (errors.not_found("rbac.authorization.k8s.io", "roles", "a"), "Add that object to the package"),
        (errors.no_such_path(), "Add the CRD to the package"),
    ],
)
def test_the_remedy_for_what_is_not_found_names_what_it_is(
    api: FakeApi, differ: Differ, missing: errors.ApiError, remedy: str
) -> None:
    api.fail(faults.Answer(missing), method="PATCH", path="rolebindings/a")
    binding = obj("rbac.authorization.k8s.io/v1", "RoleBinding", "a", roleRef={"kind": "Role", "name": "a"})
    (reported,) = differ.verdicts([binding]).values()
    assert remedy in reported["message"]


def test_what_the_line_before_has_said_is_not_repeated(differ: Differ) -> None:
    shown = differ.text([config_map(name, "nowhere") for name in "abc"])
    assert shown.count("Add the namespace to the package") == 1
    assert [line for line in shown.splitlines() if line.endswith("nowhere/c: the same")]


def test_a_name_that_the_server_refuses_is_shown(api: FakeApi, differ: Differ) -> None:
    api.put(crontab_crd())
    (reported,) = differ.verdicts([crontab("Upper")]).values()
    assert 'metadata.name: Invalid value: "Upper"' in reported["message"]


def test_an_account_that_may_read_no_crds_sees_what_is_created(api: FakeApi, differ: Differ) -> None:
    crd = crontab_crd()
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    crd["spec"]["versions"][0]["subresources"] = {"scale": scale}
    api.put(crd)
    api.establish("crontabs.stable.example.com")
    api.knobs.denied.add(("get", "apiextensions.k8s.io", "customresourcedefinitions", "*"))
    (found,) = differ.verdicts([crontab("one")]).values()
    assert found["verdict"] == "created"


@pytest.mark.parametrize("owner", ["instance", "user"])
def test_a_crd_that_takes_from_objects_of_others_is_refused(api: FakeApi, differ: Differ, owner: str) -> None:
    brought = crontab_crd()
    Instance(api.url).reconcile([brought])
    if owner == "user":
        api.put(crontab("theirs"), manager="kubectl")
    else:
        Instance(api.url, GREEN).reconcile([brought, crontab("theirs")])
    narrower = crontab_crd()
    del narrower["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["cronSpec"]
    found = differ.verdicts([narrower], "--instance", BLUE)[CRDS]
    assert found["verdict"] == "refused"
    assert "CronTab.stable.example.com default/theirs would lose spec.cronSpec" in found["message"]
    assert ("delete-guests" in found["message"]) == (owner == "user")


def test_a_crd_that_becomes_narrower_without_other_users_names_the_fields(api: FakeApi, differ: Differ) -> None:
    Instance(api.url).reconcile([crontab_crd(phase={"type": "string"})])
    found = differ.verdicts([crontab_crd()], "--instance", BLUE)[CRDS]
    assert found["verdict"] == "changed"
    assert found["message"].startswith("its schema becomes narrower: ")
    assert "status (v1) is not in the schema" in found["message"]
