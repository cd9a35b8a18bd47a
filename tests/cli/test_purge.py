# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr purge`: says what goes, asks, removes."""

import time

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object, key_of
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.resources.health import silence
from tests.capi.openstack import manifests, serve
from tests.cli.tool import Tool
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import (
    BLUE,
    GREEN,
    Instance,
    config_map,
    created_again,
    crontab,
    crontab_crd,
    crontab_crd_of,
    kept,
    obj,
    replaced,
    restored,
    state,
    stateful_set,
)
from tests.kube.keystone import keystone, put_clouds


def test_everything_goes_after_a_yes(api: FakeApi, tool: Tool) -> None:
    Instance(api.url).reconcile([crontab_crd(), crontab("one"), config_map("own")])
    result = tool.run("purge", BLUE, input="y\n")
    assert state(api) == {}
    assert result.stdout.splitlines() == [
        "delete  ConfigMap default/own",
        "delete  CustomResourceDefinition.apiextensions.k8s.io crontabs.stable.example.com",
        "delete  CronTab.stable.example.com default/one",
        f"delete  ConfigMap default/k8s-cr-driver-{BLUE} (the inventory)",
    ]
    assert "3 objects deleted, 0 released" in result.stderr


@pytest.mark.parametrize(("answer", "said"), [("n\n", "Nothing was removed"), ("", "--yes does without")])
def test_a_no_and_no_answer_change_nothing(api: FakeApi, tool: Tool, answer: str, said: str) -> None:
    Instance(api.url).reconcile([config_map("own")])
    api.requests.clear()
    assert said in tool.run("purge", BLUE, input=answer, code=1).stderr
    assert api.requests.writes == []


HOME = obj("v1", "Namespace", "home")


@pytest.mark.parametrize("lost", [HOME, crontab_crd(), config_map("a", "home")], ids=lambda one: one["kind"])
@pytest.mark.parametrize("labels", [{}, {INSTANCE_LABEL: GREEN}], ids=["no label", "another's"])
def test_what_has_lost_its_label_is_announced_as_it_goes(
    api: FakeApi, tool: Tool, lost: Object, labels: dict[str, str]
) -> None:
    Instance(api.url).reconcile([HOME, crontab_crd(), config_map("a", "home")])
    replaced(api, lost["kind"], lost["metadata"].get("namespace"), lost["metadata"]["name"], **labels)
    assert f"delete  {key_of(lost)}" in tool.run("purge", BLUE, "--yes").stdout
    assert state(api) == {}


def test_a_member_that_others_have_created_again_is_announced_and_no_copy_of_one(api: FakeApi, tool: Tool) -> None:
    Instance(api.url).reconcile([config_map("own"), config_map("more")])
    restored(api, api.get("ConfigMap", "default", "more"), "default")
    created_again(api, "ConfigMap", "default", "own")
    shown = tool.run("purge", BLUE, "--yes").stdout
    assert "delete  ConfigMap default/own" in shown and "default/copy" not in shown
    assert api.names("ConfigMap", "default") == ["copy"]


@pytest.mark.parametrize("arguments", [["purge", "", "--yes"], ["tree", " "], ["diff", ".", "--instance", ""]])
def test_an_empty_id_is_a_usage_error_and_never_the_only_instance(api: FakeApi, tool: Tool, arguments: list[str]) -> None:
    Instance(api.url).reconcile([config_map("own")])
    assert "is empty" in tool.run(*arguments, code=2).stderr
    assert "own" in api.names("ConfigMap", "default")


@pytest.mark.parametrize("id", ["../../etc", "a b", "a,b", "-a", "a" * 64])
def test_what_can_be_no_id_has_no_inventory(api: FakeApi, tool: Tool, id: str) -> None:
    api.requests.clear()
    assert "has no inventory on this cluster" in tool.run("purge", "--", id, code=2).stderr
    assert not [request for request in api.requests if "configmaps" in request.path]


def test_the_endpoints_of_an_own_service_are_no_objects_of_others(api: FakeApi, tool: Tool) -> None:
    """Their controller makes them under the name of the Service, without an owner."""
    service = obj("v1", "Service", "web", "home", spec={"ports": [{"port": 80}]})
    Instance(api.url).reconcile([obj("v1", "Namespace", "home"), service])
    api.put(obj("v1", "Endpoints", "web", "home"))
    assert "delete  Namespace home" in tool.run("purge", BLUE, "--yes").stdout.splitlines()


def test_what_is_shared_or_adopted_is_released(api: FakeApi, tool: Tool) -> None:
    api.put(config_map("theirs", b="1"))
    namespace = obj("v1", "Namespace", "common")
    Instance(api.url, BLUE, adopt=True).reconcile([namespace, config_map("theirs"), config_map("own", "common")])
    Instance(api.url, GREEN).reconcile([namespace])
    process = tool.start("purge", BLUE, "--yes")
    lines, progress = (output.splitlines() for output in process.communicate())
    assert f"release Namespace common (used by VNF instance {GREEN})" in lines
    assert "release ConfigMap default/theirs (it existed before the instance)" in lines
    assert [line for line in progress if "Namespace common" in line] == [
        f"purge: Namespace common is released and stays: used by VNF instance {GREEN}"
    ]
    assert "purge: ConfigMap default/theirs is released and stays: it existed before the instance" in progress
    assert "deleted ConfigMap common/own" in progress
    assert api.find("Namespace", None, "common")
    assert api.find("ConfigMap", "default", "theirs")
    assert not api.find("ConfigMap", "common", "own")
    assert not api.find("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")


@pytest.fixture
def held(api: FakeApi) -> None:
    """An instance with an object that is not deleted."""
    Instance(api.url).reconcile([config_map("held"), config_map("own")])
    api.edit("ConfigMap", "default", "held", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))


@pytest.fixture
def pod(api: FakeApi) -> None:
    """One of others, in a Namespace of the instance."""
    Instance(api.url).reconcile([HOME, config_map("own", "home"), crontab_crd()])
    api.put(obj("v1", "Pod", "guest", "home", spec={"containers": [{"name": "c", "image": "i"}]}))


def test_an_object_that_stays_is_named_and_a_second_purge_ends_it(api: FakeApi, tool: Tool, held: None) -> None:
    result = tool.run("purge", BLUE, "--yes", "--timeout", "1", code=3)
    assert "example.com/hold" in result.stderr
    assert api.find("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    api.release("ConfigMap", "default", "held")
    tool.run("purge", BLUE, "--yes")
    assert state(api) == {}


def test_kinds_that_cannot_be_listed_now_are_reported_and_keep_the_inventory(api: FakeApi, tool: Tool) -> None:
    Instance(api.url).reconcile([obj("networking.k8s.io/v1", "NetworkPolicy", "a", spec={}), config_map("own")])
    api.knobs.down.add(("networking.k8s.io", "v1"))
    result = tool.run("purge", BLUE, "--yes", "--timeout", "1", code=3)
    assert "Incomplete: APIService.apiregistration.k8s.io v1.networking.k8s.io" in result.stderr
    assert api.find("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    api.knobs.down.clear()
    tool.run("purge", BLUE, "--yes")
    assert state(api) == {}


def test_an_interrupted_purge_can_be_taken_up_again(api: FakeApi, tool: Tool, held: None) -> None:
    process = tool.start("purge", BLUE, "--yes")
    while not api.requests.select("DELETE", path="/held"):
        assert process.poll() is None
    assert tool.interrupt(process) == 130
    assert "Traceback" not in process.communicate()[1]
    api.release("ConfigMap", "default", "held")
    tool.run("purge", BLUE, "--yes")
    assert state(api) == {}


def test_a_refusal_is_reported(api: FakeApi, tool: Tool) -> None:
    Instance(api.url).reconcile([config_map("own")])
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="/own", times=5)
    assert "403" in tool.run("purge", BLUE, "--yes", code=3).stderr


def test_what_stays_is_announced_with_the_reason(api: FakeApi, tool: Tool, pod: None) -> None:
    api.put(crontab("users"))
    result = tool.run("purge", BLUE, input="n\n", code=1)
    assert "release Namespace home (it holds objects of others: Pod home/guest)" in result.stdout
    crd = "CustomResourceDefinition.apiextensions.k8s.io crontabs.stable.example.com"
    assert f"release {crd} (it holds objects of others: CronTab.stable.example.com default/users)" in result.stdout
    result = tool.run("purge", BLUE, "--yes")
    assert "1 object deleted, 2 released" in result.stderr
    assert api.names("CronTab") == ["users"]


def test_a_crd_that_the_server_refuses_is_announced_as_it_goes(api: FakeApi, tool: Tool) -> None:
    ours = kept(crontab("one"))
    Instance(api.url).reconcile([crontab_crd(), ours])
    with pytest.raises(NotReady, match="ListKindConflict"):
        Instance(api.url).reconcile([crontab_crd_of("cronjobtabs"), ours])
    lines = tool.run("purge", BLUE, "--yes").stdout.splitlines()
    assert "delete  CustomResourceDefinition.apiextensions.k8s.io cronjobtabs.stable.example.com" in lines
    assert api.names("CustomResourceDefinition") == ["crontabs.stable.example.com"]


def test_delete_guests_takes_all_and_announces_it(api: FakeApi, tool: Tool, pod: None) -> None:
    result = tool.run("purge", BLUE, "--yes", "--delete-guests")
    assert "delete  Namespace home (with objects of others: Pod home/guest)" in result.stdout.splitlines()
    assert state(api) == {}


def test_the_claims_of_a_stateful_set_are_announced(api: FakeApi, tool: Tool) -> None:
    controllers.run_workloads(api)
    made = stateful_set("db")
    made["metadata"]["namespace"] = "home"
    Instance(api.url).reconcile([HOME, made])
    result = tool.run("purge", BLUE, "--yes")
    assert "delete  Namespace home" in result.stdout.splitlines()
    assert "delete  PersistentVolumeClaim home/data-db-0" in result.stdout.splitlines()
    assert state(api) == {}


def test_a_server_that_hangs_is_waited_for_no_longer_than_asked(api: FakeApi, tool: Tool) -> None:
    Instance(api.url).reconcile([config_map("a")])
    api.fail(faults.Hang(), path="/namespaces/default/configmaps$", times=1000)
    began = time.monotonic()
    assert "Read timed out" in tool.run("purge", BLUE, "--yes", "--timeout", "1", code=3).stderr
    assert time.monotonic() - began < 20
    assert api.names("ConfigMap", "default")[0] == "a"


def test_no_cloud_that_a_secret_names_is_connected_to(api: FakeApi, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not to say why an object is not deleted: whoever may write Secrets would choose the address."""
    monkeypatch.setattr(silence, "PATIENCE", 0.0)
    serve(api)
    with pytest.raises(NotReady):
        Instance(api.url, seconds=1).reconcile(manifests())
    [name] = api.names("OpenStackCluster", "default")
    api.edit("OpenStackCluster", "default", name, lambda live: live["metadata"].update(finalizers=["example.com/stuck"]))
    with keystone() as cloud:
        put_clouds(api, cloud.auth())
        assert "OpenStackCluster" in tool.run("purge", BLUE, "--yes", "--timeout", "2", code=3).stderr
        assert cloud.requests == []
