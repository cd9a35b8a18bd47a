# SPDX-License-Identifier: Apache-2.0
"""The verbs for clusters of Cluster API: what their kinds forbid is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.objects.keys import Object
from tests.capi import clusters
from tests.fake_api import FakeApi
from tests.instance import obj
from tests.lcm.instance import Instance, make_vnfd


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    for kind in (clusters.CONTROL_PLANES, clusters.MACHINES):
        api.put(clusters.crd(kind))
    return api


def control_plane(replicas: int) -> Object:
    return obj("controlplane.cluster.x-k8s.io/v1", "KubeadmControlPlane", "web", spec={"replicas": replicas})


def replicas(api: FakeApi) -> int:
    return int(api.get("KubeadmControlPlane", "default", "web")["spec"]["replicas"])


def test_a_control_plane_is_scaled_in_odd_numbers_only(api: FakeApi, tmp_path: Path) -> None:
    blue = Instance(api, tmp_path, [control_plane(1)])
    blue.instantiate()
    blue.scale("SCALE_OUT")
    assert replicas(api) == 3
    api.requests.clear()
    blue.vnfd = make_vnfd(tmp_path / "by-one", [control_plane(1)], delta=1)
    with pytest.raises(sol_ex.SolException, match=r"spec\.replicas: cannot be 4: etcd") as refused:
        blue.scale("SCALE_OUT")
    assert refused.value.status == 400
    assert not api.requests.writes
    blue.scale("SCALE_IN", 2)
    assert replicas(api) == 1


def test_an_even_control_plane_is_refused_before_it_is_created(api: FakeApi, tmp_path: Path) -> None:
    with pytest.raises(sol_ex.SolException, match=r"spec\.replicas: cannot be 2: etcd"):
        Instance(api, tmp_path, [control_plane(2)]).instantiate()
    assert not api.requests.writes


def test_a_change_of_package_to_an_even_control_plane_is_refused(api: FakeApi, tmp_path: Path) -> None:
    count = {"COUNT": {"type": "integer", "default": 1}}
    manifest = {**control_plane(1), "spec": {"replicas": "${COUNT}"}}
    blue = Instance(api, tmp_path, [manifest], parameters=count)
    blue.instantiate(parameters={"COUNT": 1})
    api.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"spec\.replicas: cannot be 2: etcd"):
        blue.change(blue.vnfd, parameters={"COUNT": 2})
    assert not api.requests.writes
    blue.change(blue.vnfd, parameters={"COUNT": 3})
    assert replicas(api) == 3
