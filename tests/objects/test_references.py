# SPDX-License-Identifier: Apache-2.0
"""What an object names, by the structure of its fields: the forms that CRDs of many projects have, and what only looks so."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from k8s_cr_driver.objects.dependencies import DEPENDS_ON, deletion, graph, written_first
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.objects.references import References

GROUP = "apps.example.org"
SET = [
    ObjectKey("", "Secret", "blue", "x"),
    ObjectKey("", "Secret", "red", "x"),
    ObjectKey("", "ConfigMap", "blue", "x"),
    ObjectKey("", "Service", "blue", "x"),
    ObjectKey("", "ServiceAccount", "blue", "x"),
    ObjectKey("", "PersistentVolumeClaim", "blue", "x"),
    ObjectKey("", "PersistentVolume", "", "x"),
    ObjectKey("", "Namespace", "", "x"),
    ObjectKey("storage.k8s.io", "StorageClass", "", "x"),
    ObjectKey("rbac.authorization.k8s.io", "Role", "blue", "x"),
    ObjectKey(GROUP, "Database", "blue", "x"),
    ObjectKey(GROUP, "DeletionPolicy", "blue", "x"),
    ObjectKey(GROUP, "ClusterStore", "", "x"),
    ObjectKey(GROUP, "Store", "blue", "x"),
    ObjectKey(GROUP, "PoolClass", "blue", "x"),
    ObjectKey(GROUP, "VPC", "blue", "x"),
    ObjectKey("config.example.org", "ProviderConfig", "", "x"),
    ObjectKey("elsewhere.net", "Queue", "blue", "x"),
    ObjectKey("elsewhere.net", "Database", "blue", "x"),
]


def named(spec: Any, namespace: str = "blue", api_version: str = f"{GROUP}/v1", kind: str = "App") -> list[str]:
    """The kinds that `spec` names, with the namespaces that are not its own."""
    found = References(SET).of(manifest(spec, namespace, api_version, kind))
    keys = sorted(found.stated | found.by_field, key=lambda key: (key.kind, key.namespace))
    return [key.kind + (f" {key.namespace}" if key.namespace not in ("", namespace) else "") for key in keys]


def manifest(
    spec: Any, namespace: str = "blue", api_version: str = f"{GROUP}/v1", kind: str = "App", name: str = "own"
) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "kinds"),
    [
        ({"secretName": "x"}, ["Secret"]),
        ({"tls": [{"hosts": ["x"], "secretName": "x"}]}, ["Secret"]),
        ({"secretName": "x", "secretNamespace": "red"}, ["Secret red"]),
        ({"secretRef": {"name": "x"}}, ["Secret"]),
        ({"passwordSecretRef": {"name": "x", "key": "a", "namespace": "red"}}, ["Secret red"]),
        ({"valueFrom": {"configMapKeyRef": {"name": "x", "key": "a"}}}, ["ConfigMap"]),
        ({"credentialsSecret": "x"}, ["Secret"]),
        ({"bmc": {"credentialsName": "x"}}, ["Secret"]),
        ({"identityRef": {"name": "x", "cloudName": "openstack"}}, ["Secret"]),
        ({"password": {"name": "x", "key": "a"}}, ["ConfigMap", "Secret"]),
        ({"imagePullSecrets": [{"name": "x"}]}, ["Secret"]),
        ({"secrets": ["x"], "configMaps": ["y"]}, ["Secret"]),
        ({"volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "x"}}]}, ["PersistentVolumeClaim"]),
        ({"volumes": [{"name": "x", "configMap": {"name": "x", "optional": True}}]}, ["ConfigMap"]),
        ({"serviceAccountName": "x", "storageClassName": "x"}, ["ServiceAccount", "StorageClass"]),
        ({"serviceName": "x"}, ["Service"]),
        ({"backend": {"service": {"name": "x", "port": {"number": 80}}}}, ["Service"]),
        ({"targetNamespace": "x"}, ["Namespace"]),
        ({"targetRef": {"kind": "Service", "name": "x"}}, ["Service"]),
        ({"storeRef": {"name": "x"}}, ["Store"]),
        ({"storeRef": {"name": "x", "kind": "ClusterStore"}}, ["ClusterStore"]),
        ({"databaseRef": {"name": "x"}}, ["Database"]),
        ({"resourceRef": {"kind": "Queue", "name": "x"}}, ["Queue"]),
        ({"resourceRef": {"apiVersion": "elsewhere.net/v1", "kind": "Queue", "name": "x"}}, ["Queue"]),
        ({"resourceRef": {"apiGroup": "elsewhere.net", "kind": "Database", "name": "x"}}, ["Database"]),
        ({"providerConfigRef": {"name": "x", "policy": {}}}, ["ProviderConfig"]),
        ({"classRef": {"name": "x"}}, ["PoolClass"]),
        ({"vpcIdRef": {"name": "x"}}, ["VPC"]),
        ({"vpcRefs": [{"from": {"name": "x"}}]}, ["VPC"]),
        ({"address": "https://x.blue.svc.cluster.local:8200/v1"}, ["Service"]),
        ({"servers": ["db-0.x.blue.svc:5432", "other.blue.svc"]}, ["Service"]),
    ],
)
def test_forms_of_references(spec: Object, kinds: list[str]) -> None:
    assert named(spec) == kinds


@pytest.mark.parametrize(
    "spec",
    [
        {"secretName": "y"},
        {"secretName": "x", "secretNamespace": "green"},
        {"selector": {"service": "x"}, "matchLabels": {"secret": "x"}, "secretSelector": {"name": "x"}},
        {"template": {"metadata": {"labels": {"configMap": "x"}, "annotations": {"secretName": "x"}}}},
        {"containers": [{"name": "x", "image": "i"}], "volumes": [{"name": "x"}]},
        {"env": [{"name": "x", "value": "x"}]},
        {"roles": [{"name": "x"}], "role": "x", "database": "x", "deletionPolicy": "x"},
        {"vault": {"namespace": "x"}, "aws": {"service": "x"}},
        {"queueRef": {"name": "x"}},
        {"service": {"name": "x", "type": "LoadBalancer"}},
        {"secret": {"name": "x", "labels": {}}},
        {"resourceRef": {"apiVersion": "other.net/v1", "kind": "Queue", "name": "x"}},
        {"storeRef": {"name": "x", "kind": "Vault"}},
        {"secretKey": "x"},
        {"address": "https://x.red.svc:8200", "other": "x.blue.svcs", "host": "x"},
        {"secretRef": {"name": ["x"]}, "secretName": {"x": "x"}},
        {"authRef": {"name": "x"}},
    ],
)
def test_what_names_nothing_of_the_set(spec: Object) -> None:
    assert named(spec) == []


def test_an_object_of_the_cluster_names_one_of_any_namespace() -> None:
    assert named({"secretName": "x"}, namespace="") == ["Secret blue", "Secret red"]
    assert named({"secretRef": {"name": "x", "namespace": "red"}}, namespace="") == ["Secret red"]


def test_who_uses_an_object_goes_before_it_though_the_object_names_him() -> None:
    """The finalizer kubernetes.io/pv-protection holds a volume as long as its claim exists, which names it, too."""
    claim = manifest({"volumeName": "disk"}, "blue", "v1", "PersistentVolumeClaim", "data")
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "data", "namespace": "blue"}
    volume = manifest({"claimRef": reference}, "", "v1", "PersistentVolume", "disk")
    assert deletion([claim, volume]) == {key_of(claim): set(), key_of(volume): {key_of(claim)}}
    assert written_first([claim, volume], graph([claim, volume]))[key_of(claim)] == {key_of(volume)}


def test_a_user_is_one_though_its_kind_is_not_stated() -> None:
    """As an IPAddress of Cluster API names its IPAddressClaim, whose finalizer gives it back."""
    claim = manifest({"poolRef": {"kind": "Pool", "name": "any"}}, kind="AddressClaim", name="a")
    address = manifest({"claimRef": {"name": "a"}}, kind="Address", name="b")
    assert deletion([claim, address]) == {key_of(claim): set(), key_of(address): {key_of(claim)}}


def test_a_secret_of_a_token_is_written_after_its_account_though_that_names_it() -> None:
    """Kubernetes deletes such a Secret if there is no such account."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner", "namespace": "blue"}}
    account["secrets"] = [{"name": "token"}]  # type: ignore[assignment]
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "blue"}}
    token["metadata"] |= {"annotations": {"kubernetes.io/service-account.name": "runner"}}  # type: ignore[operator]
    edges = written_first([account, token], graph([account, token]))
    assert edges == {key_of(account): set(), key_of(token): {key_of(account)}}


def test_the_weakest_edge_of_a_cycle_is_dropped_and_the_log_says_which(caplog: pytest.LogCaptureFixture) -> None:
    """Who states the kind is believed before who only has a field of its name; of those alike none waits."""
    stating = manifest({"parentRef": {"kind": "Store", "name": "b"}}, kind="Database", name="a")
    between = manifest({"parentRef": {"kind": "Queue", "name": "c"}}, kind="Store", name="b")
    by_field = manifest({"databaseRef": {"name": "a"}}, kind="Queue", name="c")
    with caplog.at_level(logging.INFO):
        edges = deletion([stating, between, by_field])
    assert edges == {key_of(stating): set(), key_of(between): {key_of(stating)}, key_of(by_field): {key_of(between)}}
    assert f"Database.{GROUP} does not wait for Queue.{GROUP} blue/c: that would be a cycle" in caplog.text
    alike = [manifest({"storeRef": {"name": "b"}}, kind="Database", name="a"), by_field]
    alike.append(manifest({"queueRef": {"name": "c"}}, kind="Store", name="b"))
    assert not any(deletion(alike).values()) and not any(written_first(alike, graph(alike)).values())


@pytest.mark.parametrize("kind", [{}, {"kind": "VolumeSnapshot"}], ids=["by a field", "with the kind"])
def test_two_that_name_each_other_go_together(caplog: pytest.LogCaptureFixture, kind: Object) -> None:
    """The content of a snapshot stays while the snapshot does, whoever says more of the other."""
    group = "snapshot.storage.k8s.io/v1"
    content = {"source": {"snapshotHandle": "h"}, "volumeSnapshotRef": {**kind, "name": "s", "namespace": "blue"}}
    several = [
        manifest(content, "", group, "VolumeSnapshotContent", "c"),
        manifest({"source": {"volumeSnapshotContentName": "c"}}, "blue", group, "VolumeSnapshot", "s"),
        manifest({"volumeSnapshotName": "s"}, "blue", "restores.snapshot.storage.k8s.io/v1", "Restore", "r"),
    ]
    with caplog.at_level(logging.INFO):
        edges = deletion(several)
    assert edges == {key_of(several[0]): set(), key_of(several[1]): {key_of(several[2])}, key_of(several[2]): set()}
    assert "name each other: neither waits for the other" in caplog.text


def test_what_must_be_ready_first_is_stronger_than_what_is_named() -> None:
    store = manifest({"databaseRef": {"name": "a"}}, kind="Store", name="b")
    database = manifest({}, kind="Database", name="a")
    database["metadata"]["annotations"] = {DEPENDS_ON: f"{GROUP}/namespaces/blue/Store/b"}
    ready = graph([store, database])
    assert ready[key_of(database)] == {key_of(store)}
    assert not any(written_first([store, database], ready).values())


@pytest.mark.parametrize("named_account", ["", "runner"])
def test_bindings_go_after_what_runs_under_their_account(named_account: str) -> None:
    account = {"serviceAccountName": named_account} if named_account else {}
    pod = {"template": {"spec": {"containers": [{"name": "a"}], **account}}}
    job = manifest({"jobTemplate": {"spec": pod}}, "blue", "batch/v1", "CronJob", "nightly")
    prometheus = manifest({"serviceAccountName": named_account or "default"}, kind="Prometheus", name="metrics")
    subject = {"kind": "ServiceAccount", "name": named_account or "default", "namespace": "blue"}
    binding: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "metrics"},
        "roleRef": {"kind": "ClusterRole", "name": "read"},
        "subjects": [subject],
    }
    assert deletion([job, prometheus, binding])[key_of(binding)] == {key_of(job), key_of(prometheus)}
    binding["subjects"] = [{**subject, "namespace": "red"}]
    assert deletion([job, prometheus, binding])[key_of(binding)] == set()


@pytest.mark.parametrize(
    ("kind", "name", "is_meant"),
    [
        ("User", "system:serviceaccount:blue:default", True),
        ("User", "system:serviceaccount:red:default", False),
        ("User", "default", False),
        ("Group", "system:serviceaccounts:blue", True),
        ("Group", "system:serviceaccounts", True),
        ("Group", "system:serviceaccounts:red", False),
        ("Group", "system:masters", False),
    ],
)
def test_an_operator_goes_after_its_objects_whoever_its_binding_names(kind: str, name: str, is_meant: bool) -> None:
    pod = {"template": {"spec": {"containers": [{"name": "a"}]}}}
    operator, app = manifest(pod, "blue", "apps/v1", "Deployment", "operator"), manifest({})
    rbac: Object = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "operator"}}
    role = {**rbac, "kind": "ClusterRole", "rules": [{"apiGroups": [GROUP], "resources": ["apps"], "verbs": ["update"]}]}
    subjects = [{"kind": kind, "name": name}]
    granted = {"kind": "ClusterRole", "name": "operator"}
    binding = {**rbac, "kind": "ClusterRoleBinding", "roleRef": granted, "subjects": subjects}
    edges = deletion([operator, app, role, binding])
    assert edges[key_of(operator)] == ({key_of(app)} if is_meant else set())
    assert edges[key_of(binding)] == ({key_of(operator)} if is_meant else set())


@pytest.mark.parametrize(
    "spec",
    [{"server": {"serviceName": "vault"}}, {"address": "http://vault.blue.svc:8200"}, {"serviceRef": {"name": "vault"}}],
)
def test_what_responds_at_a_service_goes_after_the_custom_resources_that_name_it(spec: Object) -> None:
    """Their controller asks it before it takes a finalizer off, as to revoke a lease or to drop a database."""
    service = manifest({"selector": {"app": "vault"}}, "blue", "v1", "Service", "vault")
    template = {"metadata": {"labels": {"app": "vault"}}, "spec": {"containers": [{"name": "a"}]}}
    server = manifest({"serviceName": "vault", "template": template}, "blue", "apps/v1", "StatefulSet", "vault")
    lease = manifest(spec)
    edges = deletion([service, server, lease])
    assert edges[key_of(server)] == {key_of(lease)}
    assert edges[key_of(service)] == {key_of(lease), key_of(server)}


def test_a_field_is_read_once_for_thousands_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work for one object grows with its own fields alone."""
    many = [manifest({"secretRef": {"name": f"s-{number}"}}, name=f"a-{number}") for number in range(3000)]
    secrets = [manifest({}, "blue", "v1", "Secret", f"s-{number}") for number in range(3000)]
    read: list[str] = []
    real = References._called
    monkeypatch.setattr(References, "_called", lambda self, words, own: read.append(own) or real(self, words, own))
    edges = deletion([*many, *secrets])
    assert all(edges[key_of(secret)] == {key_of(one)} for one, secret in zip(many, secrets, strict=True))
    assert len(read) < 20
