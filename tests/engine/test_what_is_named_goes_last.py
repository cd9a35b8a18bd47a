# SPDX-License-Identifier: Apache-2.0
"""What other objects name is written before them and deleted after them, seen in requests: three reports from the field.

A controller beside the set, which the test plays, removes a finalizer only as long as it finds what it needs.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from k8s_cr_driver.objects.keys import Object
from tests.engine.test_order import custom, order_of
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import Instance, obj, wait_for


def secret(name: str, namespace: str) -> Object:
    return obj("v1", "Secret", name, namespace, stringData={"token": "sample"})


def is_going(api: FakeApi, kind: str, namespace: str, name: str) -> bool:
    return "deletionTimestamp" in api.get(kind, namespace, name)["metadata"]


def test_a_secret_goes_after_all_that_name_it_also_through_an_object_between(api: FakeApi) -> None:
    """Case 24: credentials that a ProviderConfig and a Database name, and a Bucket that names the ProviderConfig."""
    credentials = {"source": "Secret", "secretRef": {"namespace": "default", "name": "cloud-credentials", "key": "token"}}
    config = custom(api, "cloud.example.org/v1", "ProviderConfig", "cloud", {"credentials": credentials})
    bucket = custom(api, "s3.cloud.example.org/v1", "Bucket", "records", {"providerConfigRef": {"name": "cloud"}}, held=True)
    spec = {"credentialsSecret": "cloud-credentials"}
    database = custom(api, "db.example.org/v1", "Database", "subscribers", spec, "default", held=True)
    names = ("cloud-credentials", "cloud", "records", "subscribers")
    blue = Instance(api.url)
    blue.reconcile([bucket, database, config, secret("cloud-credentials", "default")])
    written = order_of(api, "PATCH", *names)
    assert written[0] == "cloud-credentials" and written.index("cloud") < written.index("records")
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "Bucket", "", "records") and is_going(api, "Database", "default", "subscribers"))
    assert set(order_of(api, "DELETE", *names)) == {"records", "subscribers"}
    api.release("Bucket", "", "records")
    wait_for(api, lambda: api.find("ProviderConfig", "", "cloud") is None)
    assert api.find("Secret", "default", "cloud-credentials") is not None
    api.release("Database", "default", "subscribers")
    run.result(10)
    assert order_of(api, "DELETE", *names)[2:] == ["cloud", "cloud-credentials"]


def test_an_identity_and_its_secret_go_after_the_cluster_that_names_it(api: FakeApi) -> None:
    """Case 26: the identity is of the cluster, its Secret in the provider's namespace; the host names its Secret otherwise."""
    infra = "infrastructure.cluster.x-k8s.io/v1beta1"
    identity = custom(api, infra, "VSphereClusterIdentity", "cloud-identity", {"secretName": "cloud"})
    reference = {"identityRef": {"kind": "VSphereClusterIdentity", "name": "cloud-identity"}}
    machines = custom(api, infra, "VSphereCluster", "blue", reference, "blue", held=True)
    host = {"online": True, "bmc": {"address": "ipmi://192.0.2.1", "credentialsName": "near"}}
    hosts = custom(api, "metal3.io/v1alpha1", "BareMetalHost", "host-1", host, "blue", held=True)
    spaces = [obj("v1", "Namespace", name) for name in ("blue", "identities")]
    blue, names = Instance(api.url), ("cloud-identity", "cloud", "near", "host-1")
    blue.reconcile([identity, machines, hosts, secret("near", "blue"), secret("cloud", "identities"), *spaces])
    run = blue.start([])
    wait_for(
        api, lambda: is_going(api, "VSphereCluster", "blue", "blue") and is_going(api, "BareMetalHost", "blue", "host-1")
    )
    assert order_of(api, "DELETE", *names) == ["host-1"]
    api.release("VSphereCluster", "blue", "blue")
    wait_for(api, lambda: api.find("Secret", "identities", "cloud") is None)
    api.release("BareMetalHost", "blue", "host-1")
    run.result(10)
    assert order_of(api, "DELETE", *names) == ["host-1", "cloud-identity", "cloud", "near"]


REALMS = """
apiVersion: v1
kind: Namespace
metadata: {name: sso}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: realm-role}
rules: [{apiGroups: [sso.example.org], resources: ['*'], verbs: ['*']}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: realm-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: realm-role}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: sso}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: sso, finalizers: [example.org/clean]}
spec:
  replicas: 1
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec: {containers: [{name: manager, image: 'registry.example.org/manager:1'}]}
"""


@pytest.mark.parametrize("account", ["default", "runner"])
def test_an_operator_goes_after_its_objects_and_its_binding_after_the_operator(api: FakeApi, account: str) -> None:
    """Case 23: as its namespace's account `default`, or one of its own."""
    controllers.run_workloads(api)
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(REALMS.replace("ACCOUNT", account)))
    if account != "default":
        objects.append(obj("v1", "ServiceAccount", account, "sso"))
        objects[-2]["spec"]["template"]["spec"]["serviceAccountName"] = account
    realm = custom(api, "sso.example.org/v1", "Realm", "one", {"host": "sso.example.org"}, "sso", held=True)
    blue, names = Instance(api.url), ("one", "manager", "realm-binding", "realm-role")
    blue.reconcile([*objects, realm])
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "Realm", "sso", "one"))
    assert order_of(api, "DELETE", *names) == ["one"]
    api.release("Realm", "sso", "one")
    wait_for(api, lambda: is_going(api, "Deployment", "sso", "manager"))
    assert order_of(api, "DELETE", *names) == ["one", "manager"]
    api.release("Deployment", "sso", "manager")
    run.result(10)
    assert order_of(api, "DELETE", *names)[-2:] == ["realm-binding", "realm-role"]


def test_what_is_named_is_written_first_and_need_not_be_ready(api: FakeApi) -> None:
    config = custom(api, "cloud.example.org/v1", "ProviderConfig", "later", {}, "default")
    del config["metadata"]["annotations"]
    bucket = custom(api, "s3.cloud.example.org/v1", "Bucket", "records", {"providerConfigRef": {"name": "later"}}, "default")
    blue = Instance(api.url)
    run = blue.start([bucket, config])
    blue.wait_until_reported("records", "Ready")
    assert order_of(api, "PATCH", "records", "later") == ["later", "records"]
    api.set_status("ProviderConfig", "default", "later", {"phase": "Up"})
    run.result(10)


def test_what_cannot_be_written_now_holds_up_nothing_that_names_it(api: FakeApi) -> None:
    """It may be the object itself that serves the webhook by which the write fails."""
    bucket = custom(api, "s3.cloud.example.org/v1", "Bucket", "records", {"secretName": "settings"}, "default")
    api.fail(faults.webhook_down(), method="PATCH", path="/settings", times=2)
    blue = Instance(api.url)
    blue.reconcile([bucket, secret("settings", "default")])
    assert order_of(api, "PATCH", "records", "settings") == ["records", "settings"]
