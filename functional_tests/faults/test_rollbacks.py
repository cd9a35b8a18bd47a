# SPDX-License-Identifier: Apache-2.0
"""What the newer package has left behind does not keep a rollback from its end."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import Refused

from ..cluster import Cluster
from ..engine import Engine
from ..objects import Object, config_map, make, namespace
from ..testbed.processes import until
from .policies import GROUP, is_enforced, policy

WHERE = "rollbacks"
DENIAL, VALUE = "no return to the first", "object.?data.?a.orValue('') != '1'"
UNKNOWN = "example.org/unknown:1"


def database(image: str) -> Object:
    labels = {"app": "db"}
    pod = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "db", "image": image}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": labels}, "template": template}
    return make("apps/v1", "StatefulSet", "db", WHERE, spec=spec)


def images(cluster: Cluster) -> list[str]:
    pods = cluster.all("Pod", WHERE)
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


def test_a_stateful_set_returns_from_a_broken_image(engine: Engine, cluster: Cluster) -> None:
    """Its controller replaces no Pod of the broken revision: Kubernetes asks users to delete it by hand."""
    with cluster.holding(namespace(WHERE)):
        engine.reconcile([database("nginx")])
        with pytest.raises(NotReady, match="Image"):
            engine.reconcile([database(UNKNOWN)], 45)
        assert UNKNOWN in images(cluster)
        engine.reconcile([database("nginx")], yields=True)
        assert images(cluster) == ["nginx", "nginx"]
        engine.terminate()


def test_the_policy_of_the_newer_package_is_named_where_it_denies_the_former_one(engine: Engine, cluster: Cluster) -> None:
    with cluster.holding(namespace(WHERE)):
        engine.reconcile([config_map("settings", WHERE, a="1")])
        engine.reconcile([config_map("settings", WHERE, a="2"), *policy(WHERE, VALUE, DENIAL, "CREATE", "UPDATE")])
        assert until(lambda: is_enforced(cluster, WHERE, DENIAL, a="1"), 60)
        with pytest.raises(Refused, match=f"{DENIAL}.*If a webhook or policy that only a former package"):
            engine.reconcile([config_map("settings", WHERE, a="1")], yields=True)
        cluster.delete("ValidatingAdmissionPolicyBinding", WHERE, api_version=GROUP)
        assert until(lambda: not is_enforced(cluster, WHERE, DENIAL, a="1"), 60)
        engine.reconcile([config_map("settings", WHERE, a="1")], yields=True)
        live = cluster.get("ConfigMap", "settings", WHERE)
        assert live and live["data"] == {"a": "1"}
        assert not cluster.get("ValidatingAdmissionPolicy", WHERE, api_version=GROUP)
        engine.terminate()
