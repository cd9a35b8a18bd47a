# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr tree`: an instance with its descendants, a package with its order."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.cli.descendants import LEVELS
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import csar
from k8s_cr_driver.resources.health import silence
from tests.capi.openstack import manifests, serve
from tests.cli.packages import write_package
from tests.cli.tool import Tool
from tests.fake_api import FakeApi, controllers
from tests.fake_api.kinds import Kind
from tests.instance import BLUE, Instance, config_map, controlled_by, crontab, crontab_crd, deployment, obj
from tests.kube.keystone import keystone, put_clouds

DEPLOYMENT = deployment(containers=[{"name": "web", "image": "web:1"}])
DEPLOYMENT["spec"]["replicas"] = 2


@pytest.fixture
def instance(api: FakeApi) -> Instance:
    controllers.run_workloads(api)
    made = Instance(api.url)
    made.reconcile([DEPLOYMENT, crontab_crd(), crontab("one")])
    owner = api.get("CronTab", "default", "one")
    api.put(controllers.owned(owner, "v1", "ConfigMap", "of-a-controller", data={"a": "1"}))
    api.put(config_map("somebody-elses"))
    return made


def shape(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    return {node["object"].split("/")[-1]: shape(node["children"]) for node in nodes}


def test_children_of_any_kind_are_below_their_owners(instance: Instance, api: FakeApi, tool: Tool) -> None:
    (replica_set,) = api.names("ReplicaSet")
    pods = {name: {} for name in api.names("Pod")}
    assert shape(tool.json("tree", BLUE)) == {
        "one": {"of-a-controller": {}},
        "CustomResourceDefinition.apiextensions.k8s.io crontabs.stable.example.com": {},
        "web": {replica_set: pods},
    }


def test_a_state_comes_with_its_reason(instance: Instance, api: FakeApi, tool: Tool) -> None:
    pod = api.names("Pod")[0]
    api.set_status("Pod", "default", pod, {"phase": "Failed", "reason": "Evicted", "message": "no disk"})
    lines = tool.run("tree", BLUE).stdout.splitlines()
    (line,) = [line for line in lines if f"/{pod} " in line]
    assert line.startswith("    Pod default/")
    assert "Failed (Evicted) no disk" in line
    assert "Ready" in next(line for line in lines if "Deployment.apps default/web" in line)
    assert not any("\x1b" in line for line in lines)


def test_kinds_that_may_not_be_listed_are_left_out(instance: Instance, api: FakeApi, tool: Tool) -> None:
    api.knobs.denied.add(("list", "apps", "replicasets", "*"))
    assert shape(tool.json("tree", BLUE))["web"] == {}


def test_dot_has_an_edge_for_each_owner(instance: Instance, tool: Tool, api: FakeApi) -> None:
    graph = tool.run("tree", BLUE, "-o", "dot").stdout
    (replica_set,) = api.names("ReplicaSet")
    assert f'"Deployment.apps default/web" -> "ReplicaSet.apps default/{replica_set}";' in graph
    assert graph.startswith("digraph {")


def test_the_cloud_of_a_cluster_on_which_nobody_acts_is_asked(
    api: FakeApi, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "PATIENCE", 0.0)
    serve(api)
    with keystone() as cloud:
        put_clouds(api, cloud.auth(application_credential_secret="wrong"))
        with pytest.raises(NotReady):
            Instance(api.url, seconds=2).reconcile(manifests())
        lines = tool.run("tree", BLUE, "--connect-clouds").stdout.splitlines()
        (line,) = [line for line in lines if line.startswith("OpenStackCluster")]
        assert f"Waiting (NobodyActs) Keystone at {cloud.url} refuses the credentials (401)" in line


def owned(api: FakeApi, name: str, *owners: dict[str, Any]) -> None:
    """Writes owner references that no API server checks."""
    stored = api.cluster.store.get(api.cluster.by_kind("ConfigMap").resource, ("default", name))
    assert stored is not None
    stored["metadata"]["ownerReferences"] = [*owners]


def test_objects_that_own_each_other_or_themselves_are_shown(api: FakeApi, tool: Tool) -> None:
    names = ("a", "b", "below", "self")
    Instance(api.url).reconcile([config_map(name) for name in names])
    owner = {name: controlled_by(api.get("ConfigMap", "default", name)) for name in names}
    for name, by in (("a", "b"), ("b", "a"), ("below", "a"), ("self", "self")):
        owned(api, name, owner[by])
    assert shape(tool.json("tree", BLUE)) == {"b": {"a": {"below": {}}}, "self": {}}


@pytest.mark.parametrize("reference", [{}, {"uid": 5}, {"uid": ["a"]}, {"uid": None, "controller": "yes"}])
def test_an_owner_reference_without_uid_is_none(api: FakeApi, tool: Tool, reference: dict[str, Any]) -> None:
    Instance(api.url).reconcile([config_map("a")])
    owned(api, "a", reference)
    assert shape(tool.json("tree", BLUE)) == {"a": {}}


@pytest.mark.parametrize("output", ["text", "json", "dot"])
def test_a_chain_of_owners_of_any_length_is_shown(api: FakeApi, tool: Tool, output: str) -> None:
    Instance(api.url).reconcile([config_map("a")])
    above = api.get("ConfigMap", "default", "a")
    for number in range(300):
        above = api.put(controllers.owned(above, "v1", "ConfigMap", f"c{number:03}", data={"a": "1"}))
    shown = tool.run("tree", BLUE, "-o", output).stdout
    assert all(f"ConfigMap default/c{number:03}" in shown for number in range(300))
    assert max(len(line) - len(line.lstrip()) for line in shown.splitlines()) < 4 * LEVELS + 4


@pytest.mark.parametrize("time", ["yesterday", "2026-01-01", "0000-13-99T00:00:00Z", "\x1b[31m", None])
def test_the_age_of_a_malformed_time_is_not_known(api: FakeApi, tool: Tool, time: str | None) -> None:
    Instance(api.url).reconcile([config_map("a")])
    for stored in api.cluster.store.objects(api.cluster.by_kind("ConfigMap").resource, "default"):
        stored["metadata"]["creationTimestamp"] = time
    known = [] if time is None else ["?"]
    assert tool.run("tree", BLUE).stdout.split() == ["ConfigMap", "default/a", "Ready", *known]
    assert tool.run("instances").stdout.splitlines()[1].split()[: 1 + len(known)] == [BLUE, *known]


@pytest.mark.parametrize("output", ["text", "json", "dot"])
def test_a_message_is_shown_without_the_secrets_and_the_values_of_the_object_in_it(
    instance: Instance, api: FakeApi, tool: Tool, output: str
) -> None:
    for stored in api.cluster.store.objects(api.cluster.by_kind("Pod").resource, "default"):
        stored["spec"]["containers"][0]["args"] = ["correct horse"]
    message = "the entry correct\\thorse is wrong at https://me:hunter2@example.com with token=abcdefghijkl"
    api.set_status("Pod", "default", api.names("Pod")[0], {"phase": "Failed", "reason": "password: s3cret", "message": message})
    shown = tool.run("tree", BLUE, "-o", output).stdout
    assert "the entry [value removed] is wrong at" in shown
    assert not any(secret in shown for secret in ("horse", "hunter2", "abcdefghijkl", "s3cret"))


def test_watch_wants_an_instance_and_a_terminal(instance: Instance, tool: Tool) -> None:
    assert "k8s-cr instances" in tool.run("tree", "unknown", code=2).stderr
    assert "terminal" in tool.run("tree", BLUE, "--watch", code=2).stderr


def test_on_a_terminal_states_have_colours_and_stay_live(instance: Instance, api: FakeApi, tool: Tool) -> None:
    with tool.on_terminal("tree", BLUE, "--watch") as (process, until):
        assert "\x1b[32mReady" in until("web")
        pod = api.names("Pod")[0]
        api.set_status("Pod", "default", pod, {"phase": "Failed", "reason": "Evicted", "message": "no disk"})
        until("\x1b[31mFailed (Evicted) no disk")
        assert tool.interrupt(process) == 130


def test_a_watch_sees_new_kinds_and_ends_with_the_instance(api: FakeApi, tool: Tool) -> None:
    instance = Instance(api.url)
    instance.reconcile([config_map("own")])
    with tool.on_terminal("tree", BLUE, "--watch") as (process, until):
        until("ConfigMap default/own")
        instance.reconcile([config_map("own"), crontab_crd(), crontab("one")])
        until("CronTab.stable.example.com default/one")
        instance.terminate()
        assert process.wait(60) == 0


def test_a_package_is_shown_in_its_order_and_needs_no_cluster(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [crontab("one", "blue"), crontab_crd(), obj("v1", "Namespace", "blue")])
    tool.kubeconfig.unlink()
    reported = tool.json("tree", str(folder))
    assert [one["object"] for one in reported] == [
        "Namespace blue",
        "CustomResourceDefinition.apiextensions.k8s.io crontabs.stable.example.com",
        "CronTab.stable.example.com blue/one",
    ]
    assert reported[2]["needs"] == [reported[1]["object"], reported[0]["object"]]
    archive = csar.write(folder, tmp_path / "p.csar")
    assert tool.json("tree", str(archive)) == reported
    assert "needs Namespace blue" in tool.run("tree", str(archive)).stdout


def test_a_graph_has_its_letters_as_they_are(tool: Tool, tmp_path: Path) -> None:
    folder, name = write_package(tmp_path / "p", [crontab("größe")]), "CronTab.stable.example.com default/größe"
    assert f'"{name}" [label="{name}", color=black];' in tool.run("tree", str(folder), "-o", "dot").stdout


@pytest.mark.parametrize(("brings", "shown"), [([], "one"), ([crontab_crd()], "default/one")])
def test_an_object_has_no_namespace_that_only_a_cluster_could_know(
    tool: Tool, tmp_path: Path, brings: list[Object], shown: str
) -> None:
    manifest = crontab("one")
    del manifest["metadata"]["namespace"]
    *_, last = tool.json("tree", str(write_package(tmp_path / "p", [*brings, manifest])))
    assert last["object"] == f"CronTab.stable.example.com {shown}"


def test_a_file_that_is_no_package_is_one_error(tool: Tool) -> None:
    path = tool.kubeconfig
    assert "neither a folder nor a CSAR" in tool.run("tree", str(path), code=1).stderr
    assert yaml.safe_load(path.read_text())


@pytest.mark.parametrize("subject", ["nosuch.csar", "packages/nosuch"])
def test_a_package_that_does_not_exist_is_not_taken_for_an_instance(tool: Tool, subject: str) -> None:
    assert f"{subject} does not exist; " in tool.run("tree", subject, code=2).stderr


def test_kinds_that_nobody_deletes_are_not_asked_for(api: FakeApi, tool: Tool) -> None:
    """`componentstatuses` returns no list of metadata as others do."""
    kind = Kind("", "v1", "ComponentStatus", "componentstatuses", namespaced=False, verbs=("get", "list"))
    api.cluster.serve(kind.resource, [kind])
    Instance(api.url).reconcile([obj("rbac.authorization.k8s.io/v1", "ClusterRole", "one", rules=[])])
    assert tool.json("tree", BLUE)
    assert not api.requests.select("GET", "/componentstatuses")


@pytest.mark.parametrize(
    ("flags", "answer", "is_asked"),
    [((), None, False), ((), "n\n", False), (("--no-connect-clouds",), "y\n", False), ((), "y\n", True)],
)
def test_a_cloud_that_a_secret_names_is_connected_to_if_the_user_says_so(
    api: FakeApi, tool: Tool, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], answer: str | None, is_asked: bool
) -> None:
    """Whoever may write Secrets would have the user's host connect to any address."""
    monkeypatch.setattr(silence, "PATIENCE", 0.0)
    serve(api)
    with pytest.raises(NotReady):
        Instance(api.url, seconds=1).reconcile(manifests())
    with keystone() as cloud:
        put_clouds(api, cloud.auth())
        found = tool.run("tree", BLUE, *flags, input=answer)
    assert (cloud.requests != []) is is_asked
    assert ("Connect to it from this host, and send them? [y/N]" in found.stderr) is (not flags)
    assert (f"has credentials for {cloud.url}" in found.stderr) is (not flags)
    assert ("was not asked" in found.stdout) is not is_asked
    assert ("--connect-clouds does without" in found.stderr) is (answer is None)
