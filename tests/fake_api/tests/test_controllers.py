# SPDX-License-Identifier: Apache-2.0
"""The test's hand in the cluster: objects in and out, statuses, reactions, ready-made controllers."""

import pytest

from tests.fake_api import FakeApi, controllers
from tests.fake_api.objects import Object
from tests.fake_api.tests.conftest import Client, config_map, crd, cron_tab, deployment


def test_put_creates_then_replaces(api: FakeApi) -> None:
    first = api.put(config_map(x="1"))
    second = api.put(config_map(x="2"))
    assert first["metadata"]["uid"] == second["metadata"]["uid"]
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "2"}
    api.delete("ConfigMap", "default", "a")
    assert api.find("ConfigMap", "default", "a") is None
    with pytest.raises(LookupError, match="no ConfigMap default/a"):
        api.get("ConfigMap", "default", "a")


def test_put_keeps_a_given_status(api: FakeApi) -> None:
    api.put(crd())
    api.put({**cron_tab(), "status": {"phase": "Ready"}})
    assert api.get("CronTab", "default", "nightly")["status"] == {"phase": "Ready"}


def test_what_is_given_out_is_a_copy(api: FakeApi) -> None:
    api.put(config_map(x="1"))["data"]["x"] = "2"
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "1"}


def test_a_reaction_comes_before_the_answer(api: FakeApi, client: Client) -> None:
    api.put(crd())

    def ready(obj: Object) -> None:
        api.set_status("CronTab", obj["metadata"]["namespace"], obj["metadata"]["name"], {"phase": "Ready"})

    api.react("CronTab", ready)
    reply = client.apply(cron_tab())
    assert "status" not in reply.body
    assert client.get(cron_tab()).body["status"] == {"phase": "Ready"}


def test_a_released_object_goes(api: FakeApi) -> None:
    api.put({**config_map(), "metadata": {"name": "a", "finalizers": ["example.com/a", "example.com/b"]}})
    api.delete("ConfigMap", "default", "a")
    api.release("ConfigMap", "default", "a", ["example.com/a"])
    assert api.get("ConfigMap", "default", "a")["metadata"]["finalizers"] == ["example.com/b"]
    api.release("ConfigMap", "default", "a")
    assert api.find("ConfigMap", "default", "a") is None


def test_events_are_about_an_object(api: FakeApi, client: Client) -> None:
    involved = api.put(deployment())
    api.event(involved, "FailedCreate", "no quota")
    reply = client.call("GET", "/api/v1/namespaces/default/events",
                        fieldSelector=f"involvedObject.uid={involved['metadata']['uid']},type=Warning")
    event, = reply.body["items"]
    assert (event["reason"], event["message"], event["involvedObject"]["kind"]) == (
        "FailedCreate", "no quota", "Deployment")


def test_the_deployment_controller_makes_ready_pods(api: FakeApi, client: Client) -> None:
    controllers.run_workloads(api)
    client.apply(deployment(replicas=2))
    status = api.get("Deployment", "default", "web")["status"]
    assert (status["readyReplicas"], status["observedGeneration"]) == (2, 1)
    assert len(api.objects("Pod")) == 2
    client.apply(deployment(replicas=1))
    assert len(api.objects("Pod")) == 1
    assert api.get("Deployment", "default", "web")["status"]["readyReplicas"] == 1
    client.delete(deployment())
    assert api.objects("ReplicaSet") == []
    assert api.objects("Pod") == []


def test_jobs_complete_and_bare_pods_run(api: FakeApi, client: Client) -> None:
    controllers.run_workloads(api)
    spec = {"containers": [{"name": "main", "image": "x"}]}
    client.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
                   "spec": {"template": {"spec": spec}}})
    client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": spec})
    assert api.get("Job", "default", "once")["status"]["succeeded"] == 1
    pod = api.get("Pod", "default", "bare")
    assert pod["status"]["phase"] == "Running"
    assert {c["type"]: c["status"] for c in pod["status"]["conditions"]}["Ready"] == "True"
