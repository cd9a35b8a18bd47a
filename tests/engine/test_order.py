# SPDX-License-Identifier: Apache-2.0
"""What is written and deleted before what, seen in the requests that reach the server."""

from __future__ import annotations

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import KEEP
from tests.fake_api import FakeApi, controllers
from tests.instance import CONDITIONS, Instance, annotated, config_map, crontab, crontab_crd, obj, state, status, wait_for

CLUSTER_API = "cluster.x-k8s.io"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

HELD = ["example.org/clean"]
STORED = {"k8s-cr-driver/ready-when": "stored"}


def custom(
    api: FakeApi, api_version: str, kind: str, name: str, spec: Object, namespace: str = "", *, held: bool = False
) -> Object:
    """An object of a kind that the cluster has from now on."""
    group, version = api_version.split("/")
    crd: Object = crontab_crd()
    plural = f"{kind.lower()}s"
    crd["metadata"]["name"] = f"{plural}.{group}"
    crd["spec"] |= {"group": group, "names": {"plural": plural, "singular": kind.lower(), "kind": kind}}
    crd["spec"]["scope"] = "Namespaced" if namespace else "Cluster"
    schema = {"openAPIV3Schema": ANYTHING}
    crd["spec"]["versions"] = [{"name": version, "served": True, "storage": True, "schema": schema}]
    api.put(crd)
    one = annotated(obj(api_version, kind, name, namespace, spec=spec), STORED)
    if held:
        one["metadata"]["finalizers"] = HELD
    return one


def order_of(api: FakeApi, method: str, *names: str) -> list[str]:
    """The names in the order in which requests of that method for them came and succeeded."""
    done = [request.path.rpartition("/")[2] for request in api.requests.select(method) if request.status < 300]
    return [name for name in done if name in names]


def test_a_crd_is_established_before_its_objects_are_written(api: FakeApi) -> None:
    api.knobs.establish_crds = False
    blue = Instance(api.url)
    run = blue.start([crontab("one"), crontab_crd(), config_map("a")])
    blue.wait_until_reported("crontabs.stable.example.com", "Waiting")
    blue.wait_until_reported("a", "Ready")
    assert not api.requests.select(path="/crontabs/")
    api.establish("crontabs.stable.example.com")
    run.result(10)
    assert not [request for request in api.requests.select("PATCH") if request.status >= 400]


def test_depends_on_waits_until_the_other_is_ready_and_deletes_in_reverse(api: FakeApi) -> None:
    later = config_map("later")
    reference = "stable.example.com/namespaces/default/CronTab/first"
    later["metadata"]["annotations"] = {"config.kubernetes.io/depends-on": reference}
    blue = Instance(api.url)
    run = blue.start([later, crontab("first"), crontab_crd(**CONDITIONS)])
    blue.wait_until_reported("first", "Waiting")
    assert api.find("ConfigMap", "default", "later") is None
    api.set_status("CronTab", "default", "first", status())
    run.result(10)
    blue.terminate()
    assert order_of(api, "DELETE", "later", "first", "crontabs.stable.example.com") == [
        "later", "first", "crontabs.stable.example.com",
    ]


def test_what_lives_in_a_namespace_comes_after_and_goes_before_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a", "home"), obj("v1", "Namespace", "home")])
    assert order_of(api, "PATCH", "a", "home") == ["home", "a"]
    blue.terminate()
    assert order_of(api, "DELETE", "a", "home") == ["a", "home"]


def test_objects_of_a_webhook_wait_for_its_backend(api: FakeApi) -> None:
    api.put(crontab_crd())
    labels = {"app": "webhook"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    backend = obj(
        "apps/v1", "Deployment", "webhook", "default",
        spec={"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    )
    service = obj("v1", "Service", "webhook", "default", spec={"selector": labels, "ports": [{"port": 443}]})
    rule = {"apiGroups": ["stable.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["crontabs"]}
    webhook = {
        "name": "check.stable.example.com", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "webhook", "namespace": "default"}},
    }
    configuration = obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "check", webhooks=[webhook])
    blue = Instance(api.url)
    run = blue.start([crontab("one"), configuration, service, backend])
    blue.wait_until_reported("webhook", "Waiting")
    assert api.find("CronTab", "default", "one") is None
    controllers.run_workloads(api)
    api.edit("Deployment", "default", "webhook", lambda live: live["metadata"].setdefault("annotations", {}).update(seen="1"))
    run.result(10)
    assert order_of(api, "PATCH", "one", "check")[-1] == "one"
    blue.terminate()
    deleted = order_of(api, "DELETE", "one", "webhook", "check")
    assert deleted.index("one") < deleted.index("check")
    assert state(api).keys() == {next(key for key in state(api) if key.kind == "CustomResourceDefinition")}


@pytest.mark.parametrize("is_kept", [False, True])
def test_what_refers_to_another_object_is_gone_before_that_is_deleted(api: FakeApi, is_kept: bool) -> None:
    """Its controller would leave the Pods of what it does not find any more."""
    controllers.run_workloads(api)
    one = crontab("one")
    one["spec"]["workloadRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "ref"}
    one["metadata"] |= {"finalizers": ["example.com/hold"], "annotations": {KEEP: str(is_kept).lower()}}
    labels = {"app": "ref"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    crd = crontab_crd()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = ANYTHING
    api.put(crd)
    blue = Instance(api.url)
    blue.reconcile([one, obj("apps/v1", "Deployment", "ref", "default", spec=spec)])
    run = blue.start([])
    if is_kept:
        run.result(10)
        assert order_of(api, "DELETE", "one", "ref") == ["ref"]
        return
    wait_for(api, lambda: "deletionTimestamp" in api.get("CronTab", "default", "one")["metadata"])
    assert order_of(api, "DELETE", "one", "ref") == ["one"]
    api.release("CronTab", "default", "one")
    run.result(10)
    assert order_of(api, "DELETE", "one", "ref") == ["one", "ref"]


def of_a_workload(api: FakeApi, kind: str, name: str, group: str = CLUSTER_API, *, held: bool = False) -> Object:
    made = custom(api, f"{group}/v1beta2", kind, name, {"clusterName": "workload"}, "default", held=held)
    made["metadata"]["labels"] = {"cluster.x-k8s.io/cluster-name": "workload"}
    return made


def test_a_cluster_is_gone_before_its_templates_and_secrets_are_deleted(api: FakeApi) -> None:
    blue, cluster = Instance(api.url), of_a_workload(api, "Cluster", "workload", held=True)
    secret = obj("v1", "Secret", "credentials", "default", stringData={"a": "b"})
    template = of_a_workload(api, "DevMachineTemplate", "template", f"infrastructure.{CLUSTER_API}")
    blue.reconcile([secret, template, cluster])
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("Cluster", "default", "workload")["metadata"])
    before = len(api.requests)
    api.release("Cluster", "default", "workload")
    run.result(10)
    later = [one.path.rpartition("/")[2] for one in api.requests.select("DELETE") if one.index >= before]
    assert {"template", "credentials"} <= set(later)
