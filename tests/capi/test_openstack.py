# SPDX-License-Identifier: Apache-2.0
"""What the provider for OpenStack does not say, and its cloud does."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from k8s_cr_driver.engine.report import clouds
from k8s_cr_driver.engine.report.clouds import Clouds
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.health import Health, silence
from k8s_cr_driver.resources.registry import resource_for
from tests.capi.clusters import CONTROL_PLANES
from tests.capi.openstack import IDENTITY, capo, condition, make_machine, manifests, serve
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, obj
from tests.kube.keystone import Keystone, keystone, put_clouds

WHERE = "cloud openstack in clouds.yaml of the Secret default/cloud-config"


@pytest.fixture
def cloud(api: FakeApi) -> Iterator[Keystone]:
    serve(api)
    with keystone() as found:
        yield found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "PATIENCE", 0.0)


def looks(api: FakeApi, *several: Object) -> list[Health]:
    """What one run finds of these objects."""
    with Connection(Endpoint(api.url)) as connection:
        found = Clouds(Client(connection, discover(connection)))
        return [found.health(resource_for(live), live) for live in several]


def stored(api: FakeApi, *several: Object) -> list[Object]:
    return [api.put(one) for one in several]


@pytest.mark.usefixtures("impatient")
def test_refused_credentials_are_the_first_line_of_a_cluster_on_which_nobody_acts(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth(application_credential_secret="wrong-and-never-shown"))
    with pytest.raises(NotReady) as error:
        Instance(api.url, seconds=2).reconcile(manifests())
    first = error.value.reports[0]
    assert (first.key.kind, first.reason) == ("OpenStackCluster", "NobodyActs")
    assert first.message.startswith(f"Keystone at {cloud.url} refuses the credentials (401): {WHERE}; no controller acts on it")
    assert "does the controller" not in first.message
    assert cloud.requests == ["POST /v3/auth/tokens"]
    assert "wrong-and-never-shown" not in str(error.value)


@pytest.mark.usefixtures("impatient")
def test_a_secret_that_does_not_exist_is_named(api: FakeApi, cloud: Keystone) -> None:
    with pytest.raises(NotReady, match=r"\(NobodyActs\): the Secret default/cloud-config, which is to have the cloud"):
        Instance(api.url, seconds=2).reconcile(manifests())


@pytest.mark.usefixtures("impatient")
def test_of_a_cloud_that_opens_the_log_of_the_controller_is_named(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth())
    (health,) = looks(api, *stored(api, capo("OpenStackCluster", {"identityRef": IDENTITY})))
    assert health.message.endswith(f"; its credentials open the {WHERE}: the cause is in the log of the controller")


def test_no_cloud_is_asked_while_somebody_acts(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth())
    with pytest.raises(NotReady) as error:
        Instance(api.url, seconds=2).reconcile(manifests())
    assert error.value.reports[0].reason == "NoStatus"
    assert not cloud.requests


@pytest.mark.usefixtures("impatient")
def test_one_cloud_is_asked_once_in_thirty_seconds(
    api: FakeApi, cloud: Keystone, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_clouds(api, cloud.auth())
    live = stored(api, *(capo("OpenStackCluster", {"identityRef": IDENTITY}, name=name) for name in ("blue", "green")))
    looks(api, *live)
    assert len(cloud.requests) == 1
    monkeypatch.setattr(clouds, "LOOK_EVERY", 0.0)
    looks(api, *live)
    assert len(cloud.requests) == 3


@pytest.mark.usefixtures("impatient")
def test_a_secret_that_cannot_be_read_is_no_cause(
    api: FakeApi, cloud: Keystone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found before stays."""
    monkeypatch.setattr(clouds, "LOOK_EVERY", 0.0)
    put_clouds(api, cloud.auth(application_credential_secret="wrong"))
    (live,) = stored(api, capo("OpenStackCluster", {"identityRef": IDENTITY}))
    with Connection(Endpoint(api.url)) as connection:
        several = [Clouds(Client(connection, discover(connection))) for _ in range(2)]
        resource = resource_for(live)
        assert "refuses the credentials (401)" in several[0].health(resource, live).message
        api.fail(faults.status(403, "Forbidden", "may not"), path="/secrets/", times=2)
        assert "refuses the credentials (401)" in several[0].health(resource, live).message
        message = several[1].health(resource, live).message
    assert message.startswith("no controller acts on it")
    assert "; the Secret default/cloud-config with its credentials cannot be read: " in message


@pytest.mark.usefixtures("impatient")
def test_a_run_asks_few_clouds(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth())
    several = [capo("OpenStackCluster", {"identityRef": IDENTITY | {"cloudName": f"c{n}"}}, name=f"b{n}") for n in range(7)]
    found = looks(api, *stored(api, *several))
    assert [health.message.endswith("was not asked") for health in found] == [False] * 5 + [True] * 2


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("spec", [{}, {"identityRef": IDENTITY}])
def test_the_cloud_of_a_silent_machine_is_its_own_or_that_of_its_cluster(
    api: FakeApi, cloud: Keystone, spec: Object
) -> None:
    put_clouds(api, cloud.auth(application_credential_secret="wrong"))
    cluster = capo("OpenStackCluster", {} if spec else {"identityRef": IDENTITY}, {"ready": True}, "blue-x7k2p")
    _, machine = stored(api, cluster, capo("OpenStackMachine", spec))
    (health,) = looks(api, machine)
    assert "refuses the credentials (401)" in health.message


@pytest.mark.usefixtures("impatient")
def test_the_secret_of_an_identity_of_the_whole_cluster_is_not_read(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth())
    identity = IDENTITY | {"type": "ClusterIdentity"}
    (health,) = looks(api, *stored(api, capo("OpenStackCluster", {"identityRef": identity})))
    assert health.reason == "NobodyActs"
    assert not cloud.requests


@pytest.mark.usefixtures("impatient")
def test_a_cluster_that_cannot_go_because_its_cloud_is_closed_says_so(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth(application_credential_secret="wrong"))
    live = capo("OpenStackCluster", {"identityRef": IDENTITY}, {"ready": True})
    live["metadata"] |= {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T01:00:00Z",
        "finalizers": ["openstackcluster.infrastructure.cluster.x-k8s.io"],
        "managedFields": [{"manager": "capo", "time": "2026-01-01T00:30:00Z"}],
    }
    (health,) = looks(api, live)
    assert health.reason == "NobodyActs"
    assert "refuses the credentials (401)" in health.message


@pytest.mark.parametrize("kind", ["OpenStackMachine", "OpenStackServer"])
@pytest.mark.parametrize(
    ("seconds", "status", "reason"),
    [(40, {"ready": True}, "Terminating"), (400, {"ready": True}, "NobodyActs"), (40, {}, "NobodyActs")],
)
def test_a_server_that_nova_deletes_may_take_longer_than_other_objects(
    api: FakeApi, kind: str, seconds: int, status: Object, reason: str
) -> None:
    """CAPO waits for it without a write; if it has never written a status, it may never have run."""
    now = datetime.datetime.now(datetime.timezone.utc)
    written, deleted = ((now - datetime.timedelta(seconds=one)).isoformat() for one in (seconds + 60, seconds))
    live = capo(kind, {}, status)
    live["metadata"] |= {
        "creationTimestamp": written,
        "deletionTimestamp": deleted,
        "finalizers": ["openstackmachine.infrastructure.cluster.x-k8s.io"],
    }
    assert [one.reason for one in looks(api, live)] == [reason]


@pytest.mark.usefixtures("impatient")
def test_a_cluster_that_has_lost_its_cloud_half_way_says_so(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth(application_credential_secret="wrong"))
    half_way = {"ready": False, "conditions": [condition("NetworkReady", "", status="True")]}
    (health,) = looks(api, *stored(api, capo("OpenStackCluster", {"identityRef": IDENTITY}, half_way)))
    assert "refuses the credentials (401)" in health.message
    put_clouds(api, cloud.auth())
    (health,) = looks(api, *stored(api, capo("OpenStackCluster", {"identityRef": IDENTITY}, half_way)))
    assert "credentials" not in health.message


@pytest.mark.usefixtures("impatient")
def test_the_cloud_of_a_machine_that_waits_for_its_bootstrap_data_is_not_asked(api: FakeApi, cloud: Keystone) -> None:
    waits = {"ready": False, "conditions": [condition("Ready", "WaitingForBootstrapData", severity="Info")]}
    looks(api, *stored(api, capo("OpenStackMachine", {"identityRef": IDENTITY}, waits)))
    assert not cloud.requests


@pytest.mark.parametrize(
    ("spec", "resolved", "trouble"),
    [
        ({"flavor": "m1.large", "image": {"imageRef": {"name": "ubuntu"}}}, {"flavorID": "8"}, False),
        ({"flavor": "m1.large", "image": {"filter": {"name": "ubuntu"}}}, {"flavorID": "8"}, True),
        ({"flavor": "m1.large", "image": {"imageRef": {"name": "ubuntu"}}}, {"ports": [{}]}, True),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_an_image_that_is_an_object_may_take_its_time(api: FakeApi, spec: Object, resolved: Object, trouble: bool) -> None:
    serve(api)
    (live,) = stored(api, capo("OpenStackServer", spec, {"ready": False, "resolved": resolved}))
    health = resource_for(live).health(live)
    assert (health.reason, health.trouble) == ("NotResolved", trouble)


def first_report(api: FakeApi, server: Object) -> str:
    """Of a control plane whose one server has that status."""
    make_machine(api, server)
    control_plane = obj(f"{CONTROL_PLANES.group}/v1", "KubeadmControlPlane", "blue", "default", spec={"replicas": 1})
    with pytest.raises(NotReady) as error:
        Instance(api.url, seconds=2).reconcile([control_plane])
    return str(error.value.reports[0])


def test_the_fault_that_nova_has_recorded_is_the_first_line(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth())
    cloud.faults["42"] = {"code": 500, "message": "No valid host was found. There are not enough hosts available."}
    failed = [condition(name, "InstanceStateError") for name in ("Ready", "InstanceReady")]
    first = first_report(api, {"ready": False, "instanceID": "42", "instanceState": "ERROR", "conditions": failed})
    assert first.startswith(
        "OpenStackServer.infrastructure.cluster.x-k8s.io default/blue-cp-1: Waiting (InstanceStateError): "
        "Nova: No valid host was found. There are not enough hosts available; Ready is False"
    )


def test_a_fault_that_cannot_be_read_says_why(api: FakeApi, cloud: Keystone) -> None:
    put_clouds(api, cloud.auth())
    failed = [condition(name, "InstanceStateError") for name in ("Ready", "InstanceReady")]
    first = first_report(api, {"ready": False, "instanceID": "42", "instanceState": "ERROR", "conditions": failed})
    assert "responds with 404 to a read of the server 42" in first


def test_a_quota_that_nova_refuses_is_the_first_line_without_a_request(api: FakeApi, cloud: Keystone) -> None:
    said = (
        "error creating Openstack instance: Expected HTTP response code [202] when accessing "
        "[POST https://nova.example.com/v2.1/servers], but got 403 instead: "
        '{"forbidden": {"code": 403, "message": "Quota exceeded for cores: Requested 2, but already used 19 of 20 cores"}}'
    )
    refused = [condition(name, "InstanceCreateFailed", said) for name in ("Ready", "InstanceReady")]
    first = first_report(api, {"ready": False, "instanceState": "ERROR", "conditions": refused})
    assert first.startswith("OpenStackServer.infrastructure.cluster.x-k8s.io default/blue-cp-1: Waiting (InstanceCreateFailed)")
    assert "Quota exceeded for cores: Requested 2, but already used 19 of 20 cores" in first
    assert not cloud.requests


def test_a_flavor_that_the_cloud_does_not_have_is_the_first_line(api: FakeApi, cloud: Keystone) -> None:
    first = first_report(api, {"ready": False, "resolved": {"imageID": "7", "ports": [{}]}})
    assert "Waiting (NotResolved): not found in the cloud so far: spec.flavor m1.large" in first
