# SPDX-License-Identifier: Apache-2.0
"""What a cluster puts in an operation's way: things that do not go, quotas, autoscalers, names and sizes at their limits."""

import re

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import Conflict, Forbidden, Refused

from ..cluster import Cluster
from ..engine import PATIENCE, Engine
from ..objects import Object, Place, config_map, deployment, make, namespace
from ..testbed.processes import until

PLACE = Place("obstacles")

HOLD = f"{PLACE.group}/hold"
# Seconds of an operation that is to end by its deadline.
SHORT = 6.0
MIB = 2**20
LONGEST = "n" * 253


def held(name: str, where: str) -> Object:
    """A ConfigMap whose finalizer somebody must remove."""
    made = config_map(name, where, a="1")
    made["metadata"]["finalizers"] = [HOLD]
    return made


def delay(engine: Engine, objects: list[Object]) -> str:
    """Why the objects are not what they should be after a short time."""
    with pytest.raises(NotReady) as raised:
        engine.reconcile(objects, seconds=SHORT)
    return str(raised.value)


def test_a_namespace_stuck_in_deletion_is_reported_and_waited_for(engine: Engine, cluster: Cluster):
    package = [namespace("stuck"), config_map("ours", "stuck", a="1")]
    engine.reconcile(package)
    before = cluster.get("Namespace", "stuck")
    cluster.create(held("theirs", "stuck"))
    # The Namespace's controller says after some seconds what is in its way; after minutes, if it has many to delete.
    assert until(lambda: re.search(f"Namespace stuck: .*{HOLD}", delay(engine, [])), PATIENCE)
    assert "Namespace stuck: Waiting (Terminating): is being deleted" in delay(engine, package)
    run = engine.start(package)
    cluster.release("ConfigMap", "theirs", "stuck")
    run.result()
    after = cluster.get("Namespace", "stuck")
    assert before and after and before["metadata"]["uid"] != after["metadata"]["uid"]
    assert cluster.of(engine.id) == ["ConfigMap stuck/ours", "Namespace stuck"]


def test_a_finalizer_that_nobody_removes_is_reported_and_left_alone(engine: Engine, cluster: Cluster):
    engine.reconcile([held("ours", PLACE.name), config_map("other", PLACE.name, a="1")])
    assert re.search(f"ConfigMap obstacles/ours: .*held by finalizers {HOLD}", delay(engine, []))
    live = cluster.get("ConfigMap", "ours", PLACE.name)
    assert live is not None and live["metadata"]["finalizers"] == [HOLD]
    cluster.release("ConfigMap", "ours", PLACE.name)
    engine.terminate()
    assert cluster.leftovers([engine.id]) == []


def test_what_somebody_has_taken_the_labels_off_is_deleted(engine: Engine, cluster: Cluster):
    shard = PLACE.custom("Shard", "db")
    engine.reconcile([config_map("ours", PLACE.name, a="1"), deployment("web"), PLACE.crd("Shard"), shard])
    for kind, name, version in (("ConfigMap", "ours", "v1"), ("Deployment", "web", "apps/v1"), ("Shard", "db", PLACE.version)):
        cluster.change(kind, name, PLACE.name, version, metadata={"labels": None})
    with cluster.holding(config_map("theirs", PLACE.name, a="1")) as (theirs,):
        engine.terminate()
        assert cluster.leftovers([engine.id]) == []
        assert cluster.get("ConfigMap", "ours", PLACE.name) is None
        assert cluster.get("Deployment", "web", PLACE.name, "apps/v1") is None
        live = cluster.get("ConfigMap", "theirs", PLACE.name)
        assert live and live["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


def test_a_quota_is_reported_and_what_was_made_is_removed(engine: Engine, cluster: Cluster):
    package = [config_map(f"file-{number}", "small", a="1") for number in range(4)]
    quota = make("v1", "ResourceQuota", "files", "small", spec={"hard": {"count/configmaps": "3"}})
    with cluster.holding(namespace("small")):
        with cluster.holding(quota):
            assert until(lambda: (cluster.get("ResourceQuota", "files", "small") or {}).get("status", {}).get("used"), 20)
            with pytest.raises(Forbidden, match=r"ConfigMap small/file-.*exceeded quota: files"):
                engine.reconcile(package)
            assert cluster.leftovers([engine.id]) == []
        engine.reconcile(package)
        assert len(cluster.of(engine.id)) == len(package)
        engine.terminate()


def test_a_quota_on_pods_is_reported_with_the_deployment_that_misses_them(engine: Engine, cluster: Cluster):
    package = [deployment("web", 2, namespace="small")]
    quota = make("v1", "ResourceQuota", "pods", "small", spec={"hard": {"pods": "1"}})
    with cluster.holding(namespace("small")):
        with cluster.holding(quota):
            assert until(lambda: (cluster.get("ResourceQuota", "pods", "small") or {}).get("status", {}).get("used"), 20)
            assert re.search(r"Deployment.apps small/web: .*exceeded quota: pods", delay(engine, package))
        engine.reconcile(package)
        engine.terminate()


def test_an_autoscaler_keeps_its_count_except_from_a_scale(engine: Engine, cluster: Cluster):
    web = deployment("web", 1, namespace=PLACE.name)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = make(
        "autoscaling/v2", "HorizontalPodAutoscaler", "web", PLACE.name,
        spec={"minReplicas": 2, "maxReplicas": 4, "scaleTargetRef": target},
    )  # fmt: skip
    engine.reconcile([web])
    with cluster.holding(autoscaler):
        assert until(lambda: replicas(cluster) == 2, 60)
        engine.reconcile([web, config_map("added", PLACE.name, a="1")])
        assert replicas(cluster) == 2
        with pytest.raises(Conflict, match=r"Deployment.apps obstacles/web: .*\.spec\.replicas .*kube-controller-manager"):
            engine.reconcile([deployment("web", 3, namespace=PLACE.name)], keep_autoscaled=False)
        assert replicas(cluster) == 2


def replicas(cluster: Cluster) -> object:
    live = cluster.get("Deployment", "web", PLACE.name, "apps/v1")
    return live and live["spec"]["replicas"]


def test_a_kind_in_two_groups_is_two_kinds(engine: Engine, cluster: Cluster):
    """And one that has the name of a kind of Kubernetes' own, as Knative's Service."""
    other = f"other.{PLACE.group}"
    theirs = {
        kind: {
            **manifest,
            "metadata": {"name": manifest["metadata"]["name"].replace(PLACE.group, other)},
            "spec": {**manifest["spec"], "group": other},
        }
        for kind, manifest in {kind: PLACE.crd(kind) for kind in ("Widget", "Service")}.items()
    }
    package = [
        *theirs.values(),
        PLACE.crd("Widget"),
        PLACE.custom("Widget", "one", PLACE.name, ours=True),
        make(f"{other}/v1", "Widget", "one", PLACE.name, spec={"ours": False}),
        make(f"{other}/v1", "Service", "one", PLACE.name, spec={"ours": False}),
        make("v1", "Service", "one", PLACE.name, spec={"selector": {"app": "one"}, "ports": [{"port": 80}]}),
    ]
    engine.reconcile(package)
    for api_version, ours in ((PLACE.version, True), (f"{other}/v1", False)):
        live = cluster.get("Widget", "one", PLACE.name, api_version)
        assert live is not None and live["spec"] == {"ours": ours}
    engine.reconcile([one for one in package if one["apiVersion"] != PLACE.version])
    assert cluster.get("Widget", "one", PLACE.name, PLACE.version) is None
    assert cluster.get("Widget", "one", PLACE.name, f"{other}/v1") is not None
    assert cluster.get("Service", "one", PLACE.name) is not None
    engine.terminate()
    assert cluster.get("Service", "one", PLACE.name) is None


def test_names_as_long_as_they_may_be(engine: Engine, cluster: Cluster):
    space = "s" * 63
    package = [
        namespace(space),
        PLACE.crd("Widget"),
        PLACE.custom("Widget", LONGEST, space, a=1),
        config_map(LONGEST, space, a="1"),
        make("v1", "Secret", LONGEST, space, stringData={"a": "1"}),
    ]
    engine.reconcile(package)
    named = {f"{kind} {space}/{LONGEST}" for kind in ("ConfigMap", "Secret", "Widget")}
    assert named < set(cluster.of(engine.id))
    with pytest.raises(Refused, match="must be no more than 253"):
        engine.reconcile([*package, config_map(f"{LONGEST}n", space)])
    engine.terminate()
    assert cluster.leftovers([engine.id]) == []


def test_objects_as_large_as_they_may_be(engine: Engine, cluster: Cluster):
    for letter in "xy":
        large = letter * MIB
        package = [PLACE.custom("Widget", "large", PLACE.name, a=large), config_map("large", PLACE.name, a=large)]
        engine.reconcile([PLACE.crd("Widget"), *package])
    live = cluster.get("ConfigMap", "large", PLACE.name)
    assert live is not None and live["data"] == {"a": "y" * MIB}
    engine.terminate()


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (config_map("large", PLACE.name, a="x" * (MIB + 1)), "ConfigMap obstacles/large: .*may not be more than 1048576 bytes"),
        (PLACE.custom("Widget", "large", PLACE.name, a="x" * (MIB * 3 // 2)), "Widget.* obstacles/large: .*too large"),
        (PLACE.custom("Widget", "large", PLACE.name, a="x" * 4 * MIB), "Widget.* obstacles/large: .*too large"),
    ],
    ids=["ConfigMap", "more than etcd takes", "more than the API server takes"],
)
def test_an_object_that_is_too_large_is_refused_at_once(engine: Engine, cluster: Cluster, manifest: Object, message: str):
    with pytest.raises(Refused, match=message):
        engine.reconcile([PLACE.crd("Widget"), manifest])
    assert cluster.leftovers([engine.id]) == []
