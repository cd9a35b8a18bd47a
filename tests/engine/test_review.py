"""What goes wrong between two steps: an answer that races, a second look at what is half done, a guest of what goes."""

from __future__ import annotations

import queue
import socket
import threading

import pytest

from k8s_cr_driver.engine import reconcile
from k8s_cr_driver.engine.loop import Loop
from k8s_cr_driver.engine.not_ready import NotReady
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.errors import Contended, Forbidden, InvalidRequest, TransportError
from k8s_cr_driver.kube import watch
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import vnfcs
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, CONDITIONS, GREEN, Instance, config_map, crontab, crontab_crd, job, obj, state, status
from tests.ownership.test_ownership import controlled_by


def test_a_crd_whose_objects_another_instance_has_stays(api: FakeApi) -> None:
    blue, green = Instance(api.url, BLUE), Instance(api.url, GREEN)
    blue.reconcile([crontab_crd(), crontab("ours")])
    green.reconcile([crontab("guest")])
    blue.terminate()
    assert api.names("CronTab") == ["guest"]
    green.terminate()
    assert api.names("CronTab") == []
    blue.reconcile([crontab_crd()])
    blue.terminate()
    assert state(api) == {}


def test_a_namespace_that_holds_guests_keeps_its_labels(api: FakeApi) -> None:
    home = obj("v1", "Namespace", "home")
    home["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "privileged"}
    blue = Instance(api.url, BLUE)
    blue.reconcile([home])
    Instance(api.url, GREEN).reconcile([config_map("guest", "home")])
    blue.terminate()
    kept = api.get("Namespace", None, "home")["metadata"]["labels"]
    assert kept == {"pod-security.kubernetes.io/enforce": "privileged"}


def test_an_object_that_goes_between_the_conflict_and_the_read_is_made(api: FakeApi) -> None:
    api.fail(faults.conflict(), method="PATCH", path="configmaps/a")
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    assert api.names("ConfigMap", "default") == ["a", f"k8s-cr-driver-{BLUE}"]


@pytest.mark.parametrize("kind", [[obj("v1", "Namespace", "home")], [crontab_crd()]], ids=["Namespace", "CRD"])
def test_a_removal_that_is_always_in_conflict_ends_at_the_deadline(api: FakeApi, kind: list[Object]) -> None:
    blue = Instance(api.url)
    blue.reconcile(kind)
    blue.seconds = 1
    api.fail(faults.conflict(), method="DELETE", times=1000)
    with pytest.raises(NotReady):
        blue.terminate()
    assert len(api.requests.select("DELETE")) < 20
    api.clear_faults()
    blue.terminate()
    assert state(api) == {}


def test_a_foreground_deletion_stays_one_when_it_is_asked_for_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.start([job("a", "one")])
    blue.wait_until_told("a", "Waiting")
    child = config_map("child")
    owner = controlled_by(api.get("Job", "default", "a"))
    child["metadata"].update(ownerReferences=[{**owner, "blockOwnerDeletion": True}], finalizers=["example.com/hold"])
    api.put(child)
    for _ in range(2):
        with pytest.raises(NotReady):
            Instance(api.url, seconds=0.5).terminate()
    policies = [request.body["propagationPolicy"] for request in api.requests.select("DELETE", "jobs/a")]
    assert policies == ["Foreground", "Foreground"]


def test_an_owner_that_waits_for_what_it_owns_does_not_hold_it(api: FakeApi) -> None:
    blue = Instance(api.url)
    child = config_map("child")
    child["metadata"]["annotations"] = {DEPENDS_ON: "stable.example.com/namespaces/default/CronTab/owner"}
    blue.reconcile([crontab_crd(), crontab("owner"), child])
    owner = api.get("CronTab", "default", "owner")
    api.edit("ConfigMap", "default", "child", lambda live: live["metadata"].update(ownerReferences=[controlled_by(owner)]))
    blue.seconds = 3
    blue.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("verb", ["instantiate", "terminate"])
def test_an_inventory_that_is_always_in_conflict_ends_at_the_deadline(api: FakeApi, verb: str) -> None:
    blue = Instance(api.url)
    if verb == "terminate":
        blue.reconcile([config_map("a")])
    blue.seconds = 1
    api.requests.clear()
    api.fail(faults.conflict(), method="PATCH", path=f"/k8s-cr-driver-{BLUE}$", times=10**6)
    with pytest.raises(Contended, match="the inventory, is changed by others all the time"):
        blue.start([config_map("a")] if verb == "instantiate" else []).result(20)
    assert len(api.requests.select("PATCH")) < 20


def test_a_refusal_is_told_also_where_another_request_never_ends() -> None:
    loop, over = Loop(Operation.lasting(0.2, id="test", instance=BLUE)), threading.Event()
    loop.send(lambda: over.wait(20), lambda _: None, lambda _: None)
    loop.refuse(Forbidden("no"))
    with pytest.raises(Forbidden):
        loop.run(lambda: False, lambda seconds: NotReady("late", []))
    over.set()
    loop.finish()


def test_a_server_that_closes_in_the_handshake_may_be_there_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_at_once() -> None:
            server.accept()[0].close()

        threading.Thread(target=close_at_once, daemon=True).start()
        endpoint = Endpoint(f"https://127.0.0.1:{server.getsockname()[1]}")
        with Connection(endpoint) as connection, pytest.raises(TransportError):
            connection.request("GET", "/api")


def test_a_ca_that_is_no_pem_is_told_and_not_left_out() -> None:
    with pytest.raises(InvalidRequest, match="ssl_ca_cert"):
        vim_endpoint({"endpoint": "https://a", "ssl_ca_cert": "/etc/ca.pem"}, {}, verify_without_ca=False)


def test_a_token_may_end_with_a_newline_and_never_gets_into_a_text() -> None:
    assert vim_endpoint({"endpoint": "https://a"}, {"bearer_token": "abc\n"}).authorization == "Bearer abc"
    with pytest.raises(InvalidRequest, match="bearer_token") as raised:
        vim_endpoint({"endpoint": "https://a"}, {"bearer_token": "very\nsecret"})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("field", ["spec.password", "spec.auth.clientSecret", "spec.tokens[0]"])
def test_a_rejected_value_of_a_secret_field_is_not_told(field: str) -> None:
    text = redact(f'{field}: Invalid value: "hunter2": should match')
    assert "hunter2" not in text
    assert field in text


def test_a_rejected_value_of_another_field_is_told() -> None:
    assert "hunter2" in redact('spec.tokenless: Invalid value: "x", spec.cronSpec: Invalid value: "hunter2"')


def test_bare_pods_with_the_same_labels_are_one_vnfc_each(api: FakeApi) -> None:
    pods = {name: obj("v1", "Pod", name, "default", spec={"containers": [{"name": "c", "image": "i"}]}) for name in "ab"}
    for pod in pods.values():
        pod["metadata"]["labels"] = {"app": "x", INSTANCE_LABEL: BLUE}
        api.put({**pod, "status": {"phase": "Running"}})
    with Connection(Endpoint(api.url)) as connection:
        vdus = {name: resource_for(pod) for name, pod in pods.items()}
        found = vnfcs.collect(Client(connection, discover(connection)), BLUE, vdus)
    assert sorted((one.vdu, one.id) for one in found) == [("a", "a"), ("b", "b")]


def test_a_stream_that_cannot_be_understood_is_opened_again() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    metadata = b'{"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}'
    bodies = [
        b'{"type": "ADDED", "object": {"metadata": "nonsense"}}\n',
        b'{"type": "BOOKMARK", "object": {"metadata": %b}}\n' % metadata,
    ]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for body in bodies:
                client = server.accept()[0]
                client.recv(65536)
                client.sendall(head + body)
                client.close()

        threading.Thread(target=serve, daemon=True).start()
        heard: queue.SimpleQueue[watch.Message] = queue.SimpleQueue()
        with Connection(Endpoint(f"http://127.0.0.1:{server.getsockname()[1]}")) as connection:
            resource = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"list", "watch"}))
            stream = watch.Reflector(connection, resource, "", "a=b", heard.put)
            assert heard.get(timeout=10) == watch.Relist(stream, {})
            stream.stop()


def test_what_is_logged_of_a_wait_holds_no_credentials(
    api: FakeApi, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "TELL_EVERY", 0.05)
    caplog.set_level("INFO")
    api.put(crontab_crd(**CONDITIONS))
    api.react(
        "CronTab",
        lambda live: "status" in live
        or api.set_status("CronTab", "default", "one", status("False", message="login with password: hunter2 refused")),
        "stable.example.com",
    )
    with pytest.raises(NotReady):
        Instance(api.url, seconds=1).reconcile([crontab("one")])
    assert "refused" in caplog.text
    assert "hunter2" not in caplog.text
