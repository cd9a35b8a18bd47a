# SPDX-License-Identifier: Apache-2.0
"""What the API server would not create is not deleted to be replaced; what is the object's own does not keep it."""

from __future__ import annotations

import ipaddress

import pytest

from k8s_cr_driver.errors import Refused

from ..cluster import Cluster
from ..engine import Engine
from ..objects import Object, config_map, make, namespace, volume_claim
from ..testbed.processes import until
from .policies import is_enforced, policy

WHERE = "replacements"
DENIAL, NAMES = "no frozen ones", "!(object.metadata.name in ['frozen', 'probe'])"
REPLACE = {"k8s-cr-driver/replace": "true"}


def uid(cluster: Cluster, kind: str, name: str) -> str:
    live = cluster.get(kind, name, WHERE)
    assert live is not None, f"{kind} {name} no longer exists"
    return str(live["metadata"]["uid"])


def annotated(manifest: Object) -> Object:
    manifest["metadata"]["annotations"] = dict(REPLACE)
    return manifest


def frozen(value: str) -> Object:
    return annotated({**config_map("frozen", WHERE, a=value), "immutable": True})


def service(address: str) -> Object:
    spec = {"type": "NodePort", "clusterIP": address, "ports": [{"port": 80, "nodePort": 30917}], "selector": {"app": "web"}}
    return annotated(make("v1", "Service", "web", WHERE, spec=spec))


def test_an_object_whose_creation_a_policy_denies_by_name_stays(engine: Engine, cluster: Cluster) -> None:
    with cluster.holding(namespace(WHERE)):
        engine.reconcile([frozen("1")])
        before = uid(cluster, "ConfigMap", "frozen")
        with cluster.holding(*policy(WHERE, NAMES, DENIAL, "CREATE")):
            assert until(lambda: is_enforced(cluster, WHERE, DENIAL), 60)
            with pytest.raises(Refused, match=f"{DENIAL}.*So it is not replaced"):
                engine.reconcile([frozen("2")])
            assert uid(cluster, "ConfigMap", "frozen") == before
        assert until(lambda: not is_enforced(cluster, WHERE, DENIAL), 60)
        engine.reconcile([frozen("3")])
        assert uid(cluster, "ConfigMap", "frozen") != before
        engine.terminate()


def test_a_service_keeps_its_port_and_a_quota_has_room_for_what_is_replaced(engine: Engine, cluster: Cluster) -> None:
    api_server = cluster.get("Service", "kubernetes", "default")
    assert api_server
    first, second = (str(ipaddress.ip_address(api_server["spec"]["clusterIP"]) + number) for number in (201, 202))
    quota = make("v1", "ResourceQuota", "all", WHERE, spec={"hard": {"services": "1", "services.nodeports": "1"}})
    with cluster.holding(namespace(WHERE)), cluster.holding(quota):
        assert until(lambda: used(cluster), 20)
        engine.reconcile([service(first)])
        before = uid(cluster, "Service", "web")
        assert until(lambda: used(cluster) == "1", 20)
        engine.reconcile([service(second)])
        live = cluster.get("Service", "web", WHERE)
        assert live
        assert live["metadata"]["uid"] != before
        assert (live["spec"]["clusterIP"], live["spec"]["ports"][0]["nodePort"]) == (second, 30917)
        engine.terminate()


def used(cluster: Cluster) -> str:
    quota = cluster.get("ResourceQuota", "all", WHERE) or {}
    return str(quota.get("status", {}).get("used", {}).get("services"))


def database(service: str, when_deleted: str) -> Object:
    """Its Pod waits for its claim, because the bed has no volumes."""
    labels = {"app": "db"}
    spec = {
        "serviceName": service,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "nginx"}]}},
        "volumeClaimTemplates": [volume_claim("data")],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": when_deleted, "whenScaled": "Retain"},
    }
    made = annotated(make("apps/v1", "StatefulSet", "db", WHERE, spec=spec))
    made["metadata"]["annotations"]["k8s-cr-driver/ready-when"] = "stored"
    return made


def test_the_claims_of_a_stateful_set_outlive_its_replacement(engine: Engine, cluster: Cluster) -> None:
    """With `whenDeleted: Delete` its controller makes it their owner, so that they would go with it."""

    def claim() -> Object:
        return cluster.get("PersistentVolumeClaim", "data-db-0", WHERE) or {"metadata": {}}

    with cluster.holding(namespace(WHERE)):
        engine.reconcile([database("one", "Delete")])
        assert until(lambda: claim()["metadata"].get("ownerReferences"), 30)
        before = claim()["metadata"]["uid"]
        with pytest.raises(Refused, match="whenDeleted is Delete"):
            engine.reconcile([database("two", "Delete")])
        engine.reconcile([database("one", "Retain")])
        engine.reconcile([database("two", "Retain")])
        live = cluster.get("StatefulSet", "db", WHERE, api_version="apps/v1")
        assert live and live["spec"]["serviceName"] == "two"
        assert claim()["metadata"]["uid"] == before and "deletionTimestamp" not in claim()["metadata"]
        engine.terminate()
