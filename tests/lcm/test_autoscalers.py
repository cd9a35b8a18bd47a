# SPDX-License-Identifier: Apache-2.0
"""Scale of what an autoscaler scales: a count that it would undo is refused before the first write, and errors name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.driver import Driver
from tests.fake_api import FakeApi, faults
from tests.instance import crontab_crd, obj
from tests.lcm.instance import Instance, instantiated
from tests.lcm.web import deployment

PATH = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
NAME = r"HorizontalPodAutoscaler\.autoscaling default/web \(minReplicas 2, maxReplicas 4\)"
KEDA = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "queue", "uid": "1", "controller": True}


def autoscaler(
    least: int | None = 2, most: int = 4, target: str = "web", version: str = "apps/v1", **metadata: Any
) -> dict[str, Any]:
    reference = {"apiVersion": version, "kind": "Deployment", "name": target}
    spec = {"maxReplicas": most, "scaleTargetRef": reference, **({} if least is None else {"minReplicas": least})}
    live = obj("autoscaling/v2", "HorizontalPodAutoscaler", "web", "default", spec=spec)
    live["metadata"].update(metadata)
    return live


def scaled_by_it(cluster: FakeApi, count: int) -> None:
    """As a HorizontalPodAutoscaler does it."""
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": count}}
    with Connection(Endpoint(cluster.url)) as connection:
        connection.request("PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale", body=scale)


def lists(cluster: FakeApi) -> int:
    return len(cluster.requests.select("GET", "horizontalpodautoscalers"))


def web(cluster: FakeApi, folder: Path, count: int, **package: Any) -> Instance:
    return instantiated(cluster, folder, [deployment(count)], **package)


@pytest.mark.parametrize(
    ("before", "way", "after", "bounds"),
    [(3, "SCALE_OUT", 5, (2, 4)), (3, "SCALE_IN", 1, (2, 4)), (1, "SCALE_OUT", 3, (None, 2))],
)
def test_a_count_that_an_autoscaler_would_undo_is_refused_before_the_first_write(
    cluster: FakeApi, tmp_path: Path, before: int, way: str, after: int, bounds: tuple[int | None, int]
) -> None:
    blue = web(cluster, tmp_path, before)
    cluster.put(autoscaler(*bounds))
    cluster.requests.clear()
    least, most = bounds[0] or 1, bounds[1]
    words = (
        rf"aspectId: VDU Web is Deployment\.apps default/web, spec\.replicas: cannot be {after}: HorizontalPodAutoscaler\S+ "
        rf"default/web \(minReplicas {least}, maxReplicas {most}\) would undo it\. Change these bounds"
    )
    with pytest.raises(sol_ex.SolException, match=words) as refused:
        blue.scale(way)
    assert refused.value.status == 400
    assert cluster.requests.writes == []
    assert lists(cluster) == 1


def test_the_refusal_names_the_controller_of_the_autoscaler(cluster: FakeApi, tmp_path: Path) -> None:
    blue = web(cluster, tmp_path, 3)
    cluster.put(autoscaler(ownerReferences=[KEDA]))
    words = r"cannot be 5: ScaledObject\.keda\.sh default/queue, by its HorizontalPodAutoscaler\S+ default/web \(min"
    with pytest.raises(sol_ex.SolException, match=words):
        blue.scale("SCALE_OUT")


def test_an_account_that_may_not_list_autoscalers_can_scale(cluster: FakeApi, tmp_path: Path) -> None:
    blue = web(cluster, tmp_path, 3)
    cluster.put(autoscaler())
    cluster.fail(faults.status(403, "Forbidden"), method="GET", path=PATH, times=9)
    blue.scale("SCALE_OUT")
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 5
    assert lists(cluster) == 1


def test_the_refusal_of_a_count_that_an_autoscaler_owns_names_it(cluster: FakeApi, tmp_path: Path) -> None:
    blue = web(cluster, tmp_path, 2)
    cluster.put(autoscaler())
    scaled_by_it(cluster, 3)
    words = rf"Deployment\.apps default/web, spec\.replicas: {NAME} has set it"
    with pytest.raises(sol_ex.SolException, match=words) as refused:
        blue.scale("SCALE_OUT")
    assert "force-conflicts" not in refused.value.detail
    assert lists(cluster) == 1
    req = objects.ScaleVnfRequest.from_dict({"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 1})
    Driver().scale_rollback(req, blue.inst, blue.grant_req, None, blue.vnfd)
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3
    assert lists(cluster) == 1, "a rollback asks nothing"


def test_a_count_that_an_autoscaler_resets_names_it(cluster: FakeApi, tmp_path: Path) -> None:
    blue = web(cluster, tmp_path, 2)
    cluster.put(autoscaler())

    def reset(live: dict[str, Any]) -> None:
        if live["spec"]["replicas"] > 2:
            scaled_by_it(cluster, 2)

    cluster.cluster.reactions.insert(0, ("Deployment", None, reset))
    with pytest.raises(sol_ex.SolException, match=rf"CountReset\): spec.replicas is 2 instead of 4: {NAME} has set it"):
        blue.scale("SCALE_OUT")


def scaled_object(least: int | None = 2, most: int | None = 4, **target: str) -> dict[str, Any]:
    counts = {"minReplicaCount": least, "maxReplicaCount": most}
    spec = {"scaleTargetRef": {"name": "web", **target}, **{name: count for name, count in counts.items() if count is not None}}
    return obj("stable.example.com/v1", "ScaledObject", "queue", "default", spec=spec)


def with_scaled_objects(cluster: FakeApi) -> None:
    crd = crontab_crd()
    crd["metadata"]["name"] = "scaledobjects.stable.example.com"
    crd["spec"]["names"] = {"kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject"}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"spec": free, "status": free}
    cluster.put(crd, manager="kubectl")


def lists_of_others(cluster: FakeApi) -> int:
    return len(cluster.requests.select("GET", "scaledobjects"))


@pytest.mark.parametrize(
    "manifest",
    [
        scaled_object(),
        scaled_object(apiVersion="apps/v1", kind="Deployment"),
        scaled_object(least=None),
    ],
)
def test_an_autoscaler_that_has_made_no_other_yet_is_seen(cluster: FakeApi, tmp_path: Path, manifest: dict[str, Any]) -> None:
    with_scaled_objects(cluster)
    blue = web(cluster, tmp_path, 3)
    cluster.put(manifest)
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"cannot be 5: ScaledObject\.stable\S+ default/queue \(min.* would undo it"):
        blue.scale("SCALE_OUT")
    assert cluster.requests.writes == []
    assert lists_of_others(cluster) == 1


@pytest.mark.parametrize(
    ("manifest", "before", "way"),
    [
        (autoscaler(most=5), 3, "SCALE_OUT"),
        (autoscaler(least=None), 2, "SCALE_IN"),  # to 0, which disables it
        (autoscaler(target="other"), 3, "SCALE_OUT"),
        (autoscaler(version="example.org/v1"), 3, "SCALE_OUT"),
        (scaled_object(most=5), 3, "SCALE_OUT"),
        (scaled_object(least=None, most=None), 3, "SCALE_OUT"),
        (scaled_object(kind="StatefulSet"), 3, "SCALE_OUT"),
        (scaled_object() | {"status": {"conditions": [{"type": "Paused", "status": "True"}]}}, 3, "SCALE_OUT"),
    ],
)
def test_a_count_that_no_autoscaler_would_undo_is_set(
    cluster: FakeApi, tmp_path: Path, manifest: dict[str, Any], before: int, way: str
) -> None:
    with_scaled_objects(cluster)
    blue = web(cluster, tmp_path, before)
    cluster.put(manifest)
    blue.scale(way)
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == before + (2 if way == "SCALE_OUT" else -2)


def test_no_others_are_listed_where_the_first_kind_has_one(cluster: FakeApi, tmp_path: Path) -> None:
    with_scaled_objects(cluster)
    blue = web(cluster, tmp_path, 3)
    cluster.put(scaled_object())
    cluster.put(autoscaler(most=5))
    blue.scale("SCALE_OUT")
    blue.heal()
    assert lists_of_others(cluster) == 0


def test_no_other_verb_asks_for_autoscalers(cluster: FakeApi, tmp_path: Path) -> None:
    blue = web(cluster, tmp_path, 2)
    cluster.put(autoscaler())
    scaled_by_it(cluster, 3)
    blue.heal()
    blue.change(blue.vnfd)
    assert lists(cluster) == 0
    assert cluster.get("Deployment", "default", "web")["spec"]["replicas"] == 3
