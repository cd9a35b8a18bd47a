# SPDX-License-Identifier: Apache-2.0
"""What the credentials allow, and what a cluster that cannot be reached says: known before anything is written."""

from __future__ import annotations

import time

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import ConnectionFailed, Forbidden, TransportError
from k8s_cr_driver.kube import auth
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import CONDITIONS, Instance, annotated, config_map, crontab, crontab_crd, obj, state, status
from tests.times import change_times

EVERYWHERE, ANY = "", "*"


def writes(api: FakeApi) -> list[Request]:
    """All that could have changed something; a review of rights does not."""
    return [request for request in api.requests.writes if "/authorization.k8s.io/" not in request.path]


def test_where_a_watch_of_all_namespaces_is_forbidden_there_is_one_for_each(api: FakeApi) -> None:
    api.knobs.denied |= {(verb, "", "configmaps", EVERYWHERE) for verb in ("list", "watch")}
    objects = [obj("v1", "Namespace", "blue"), config_map("a", "blue"), config_map("b", "default")]
    blue = Instance(api.url)
    blue.reconcile(objects)
    blue.reconcile([*objects[:2], config_map("c", "default")])
    ends = {request.path for request in api.requests.select(path="configmaps", watch=True) if request.status == 200}
    assert ends == {f"/api/v1/namespaces/{namespace}/configmaps" for namespace in ("blue", "default")}
    assert api.names("ConfigMap", "blue") == ["a"]
    blue.terminate()
    assert state(api) == {}


def test_a_watch_of_all_namespaces_that_is_forbidden_during_the_run_is_replaced_too(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, forbidden=0)
    blue = Instance(api.url)
    namespace, kept, dropped = obj("v1", "Namespace", "blue"), config_map("a", "blue"), config_map("b", "default")
    blue.reconcile([namespace, kept, dropped])
    crd = crontab_crd(conditions={"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
    run = blue.start([namespace, kept, crd, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.knobs.denied |= {(verb, "", "configmaps", EVERYWHERE) for verb in ("list", "watch")}
    api.break_streams(faults.stream_end(), "ConfigMap")
    assert api.wait_for_streams(6)  # the inventory's, those of three kinds, and one of ConfigMaps in each of two namespaces
    api.set_status("CronTab", "default", "one", {"conditions": [{"type": "Ready", "status": "True"}]})
    run.result(10)
    assert not api.find("ConfigMap", "default", "b")


@pytest.mark.parametrize("status, reason", [(403, "Forbidden"), (404, "NotFound")])
def test_an_account_that_may_not_create_reviews_gets_errors_from_its_writes(
    api: FakeApi, status: int, reason: str
) -> None:
    api.fail(faults.status(status, reason), path="selfsubjectrulesreviews", times=9)
    Instance(api.url).reconcile([config_map("a")])
    assert api.find("ConfigMap", "default", "a")


@pytest.mark.parametrize("verb", ["create", "patch", "get", "list", "watch", "delete"])
def test_a_missing_permission_is_named_and_nothing_is_written(api: FakeApi, verb: str) -> None:
    api.put(crontab_crd())
    api.requests.clear()
    api.knobs.denied.add((verb, "stable.example.com", "crontabs", ANY))
    with pytest.raises(Forbidden, match=rf"{verb} crontabs.stable.example.com\. Grant it.*nothing was written"):
        Instance(api.url).reconcile([crontab("one")])
    assert writes(api) == []


def test_all_missing_permissions_are_named_at_once(api: FakeApi) -> None:
    api.knobs.denied |= {("patch", "", "configmaps", ANY), ("create", "apps", "deployments", ANY)}
    deployment = obj("apps/v1", "Deployment", "web", "default", spec={})
    with pytest.raises(Forbidden, match=r"create deployments\.apps, patch configmaps\."):
        Instance(api.url).reconcile([config_map("a"), deployment])
    assert writes(api) == []


@pytest.mark.parametrize("reviews", [0, 9])
def test_a_namespace_in_which_the_inventory_may_not_be_is_named_with_the_remedy(api: FakeApi, reviews: int) -> None:
    """Also to an account that may not ask for its rules."""
    api.knobs.denied.add(("get", "", "configmaps", "default"))
    api.fail(faults.status(403, "Forbidden"), path="selfsubjectrulesreviews", times=reviews)
    with pytest.raises(Forbidden, match=r"default/k8s-cr-driver-.*\[k8s_cr\] inventory_namespace"):
        Instance(api.url).reconcile([obj("v1", "Namespace", "blue")])
    assert writes(api) == []


def test_a_403_of_a_write_ends_the_run(api: FakeApi) -> None:
    """Admission forbids what RBAC allows; what has begun is found again."""
    api.fail(faults.status(403, "Forbidden", 'configmaps "a" is forbidden: no'), method="PATCH", path="configmaps/a$")
    with pytest.raises(Forbidden, match=r"ConfigMap default/a: configmaps \"a\" is forbidden: no"):
        Instance(api.url).reconcile([config_map("a"), config_map("b")])
    Instance(api.url).terminate()
    assert state(api) == {}


@pytest.mark.parametrize(
    "message",
    [
        "because it is being terminated",
        'error looking up service account a/b: "b" not found',
        "status unknown for quota: memory, resources: memory",
        "failed quota: cpus: must specify cpu for: web-server",
    ],
)
def test_a_403_that_is_about_order_passes(api: FakeApi, message: str) -> None:
    api.fail(faults.status(403, "Forbidden", f'configmaps "a" is forbidden: {message}'), method="PATCH", path="maps/a$")
    Instance(api.url).reconcile([config_map("a")])
    assert api.faults_pending == 0
    assert api.names("ConfigMap", "default")[0] == "a"


def test_after_the_first_refusal_nothing_more_is_sent(api: FakeApi) -> None:
    api.fail(faults.status(403, "Forbidden", "no"), method="PATCH", path="configmaps/map-", times=1000)
    with pytest.raises(Forbidden):
        Instance(api.url).reconcile([config_map(f"map-{number}") for number in range(200)])
    assert len(api.requests.select("PATCH", "configmaps/map-")) < 50


def test_a_refused_deletion_keeps_no_other_from_its_own_if_the_rest_is_abandoned(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map(name) for name in ("a", "b", "c")])
    blue.abandon, blue.seconds = True, 2
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="configmaps/a$", times=1000)
    api.fail(faults.unavailable(), method="DELETE", path="configmaps/[bc]$", times=2)
    with pytest.raises(NotReady) as left:
        blue.terminate()
    assert [report.key.name for report in left.value.reports] == ["a"]
    assert "403 Forbidden: no" in left.value.reports[0].message


def test_a_run_that_is_stopped_sends_nothing_more(api: FakeApi) -> None:
    blue = Instance(api.url)
    api.react("ConfigMap", lambda live: blue.stop.set())
    with pytest.raises(Exception, match="stopped"):
        blue.reconcile([config_map(f"map-{number}") for number in range(200)])
    assert len(api.requests.select("PATCH", "configmaps/map-")) < 50


def test_a_token_that_has_expired_is_one_clear_error(api: FakeApi) -> None:
    api.knobs.tokens = {"another"}
    with pytest.raises(ConnectionFailed, match=r"does not accept the credentials \(401\)"):
        Instance(api.url).reconcile([config_map("a")])
    assert len(api.requests) == 1


def test_a_token_that_expires_during_the_wait_ends_the_run(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "REFUSED_GRACE", 0.2)
    api.knobs.tokens = {"secret"}
    blue = Instance(api.url, authorization="Bearer secret")
    crd = crontab_crd(conditions={"type": "array", "items": {"type": "object"}})
    run = blue.start([crd, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.knobs.tokens = set()
    api.break_streams(faults.stream_end(), "CronTab")
    with pytest.raises(ConnectionFailed, match="401"):
        run.result(10)


@pytest.mark.parametrize("path", ["crontabs", "configmaps/b"])
def test_a_server_that_starts_and_cannot_check_credentials_yet_is_asked_again(
    api: FakeApi, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "REFUSED_GRACE", 10)
    blue = Instance(api.url)
    crd = crontab_crd(conditions={"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
    late = config_map("b")
    late["metadata"]["annotations"] = {
        "config.kubernetes.io/depends-on": "stable.example.com/namespaces/default/CronTab/one"
    }
    run = blue.start([crd, crontab("one"), late])
    blue.wait_until_reported("one", "Waiting")
    api.fail(faults.status(401, "Unauthorized"), path=path, times=2)
    api.break_streams(faults.stream_end(), "CronTab")
    api.set_status("CronTab", "default", "one", {"conditions": [{"type": "Ready", "status": "True"}]})
    run.result(10)
    assert api.faults_pending == 0


def test_a_server_that_forbids_for_a_moment_what_it_has_allowed_is_asked_again(api: FakeApi) -> None:
    """A server that has just started has not read its RBAC yet."""
    blue = Instance(api.url)
    crd = crontab_crd(conditions={"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
    run = blue.start([crd, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.fail(faults.forbidden("watch", "crontabs"), path="crontabs", times=3)
    api.break_streams(faults.stream_end(), "CronTab")
    api.set_status("CronTab", "default", "one", {"conditions": [{"type": "Ready", "status": "True"}]})
    run.result(10)
    assert api.faults_pending == 0


def test_a_change_and_a_deletion_that_a_server_forbids_that_was_away_are_repeated(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    for method, name, verb in (("PATCH", "a", "patch"), ("DELETE", "b", "delete"), ("PATCH", "k8s-cr-driver-.*", "patch")):
        api.fail(faults.unavailable(), method=method, path=f"configmaps/{name}$")
        api.fail(faults.forbidden(verb), method=method, path=f"configmaps/{name}$", times=2)
    blue.reconcile([{**config_map("a"), "data": {"x": "new"}}])
    assert api.faults_pending == 0
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "new"}
    assert not api.find("ConfigMap", "default", "b")


def test_what_stays_forbidden_after_a_restart_is_named(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    change_times(monkeypatch, forbidden=1)
    api.fail(faults.unavailable(), method="PATCH", path="/configmaps/a$")
    api.fail(faults.forbidden("patch"), method="PATCH", path="/configmaps/a$", times=1000)
    with pytest.raises(Forbidden, match=r'ConfigMap default/a: .* User "tacker" cannot patch resource "configmaps"'):
        Instance(api.url).reconcile([config_map("a")])
    assert len(api.requests.select("PATCH", "/configmaps/a")) > 2


def test_what_is_forbidden_without_a_sign_of_a_restart_ends_the_run_at_once(api: FakeApi) -> None:
    api.fail(faults.forbidden("patch"), method="PATCH", path="/configmaps/a$", times=1000)
    with pytest.raises(Forbidden, match=r'User "tacker" cannot patch resource "configmaps"'):
        Instance(api.url).reconcile([config_map("a")])
    assert len(api.requests.select("PATCH", "/configmaps/a")) == 1


def test_what_may_not_be_listed_keeps_no_namespace_after_a_server_was_away(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminate that left it because of the 403 would answer COMPLETED, and nobody would delete it."""
    change_times(monkeypatch, forbidden=1)
    blue = Instance(api.url)
    blue.reconcile([obj("v1", "Namespace", "blue"), config_map("a", "blue")])
    api.fail(faults.unavailable(), method="DELETE", path="configmaps/a$")
    api.fail(faults.forbidden("list", "secrets"), method="GET", path="/secrets", times=1000)
    blue.terminate()
    assert not api.find("Namespace", "", "blue")


def test_what_a_restarted_server_forbids_to_list_is_no_reason_to_leave_a_namespace(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([obj("v1", "Namespace", "blue"), config_map("a", "blue")])
    api.fail(faults.unavailable(), method="DELETE", path="configmaps/a$")
    api.fail(faults.forbidden("list", "pods"), method="GET", path="/pods$")
    blue.terminate()
    assert api.faults_pending == 0
    assert not api.find("Namespace", "", "blue")


def test_a_server_that_forbids_everything_after_a_restart_is_waited_for(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look of the fence, the first watch of a kind, and the writes."""
    change_times(monkeypatch, trusted=-1)
    restarted: list[float] = []

    def is_starting(request: Request) -> bool:
        if not restarted and request.method == "PATCH" and request.path.endswith("configmaps/a"):
            restarted.append(time.monotonic())
        return bool(restarted) and time.monotonic() < restarted[0] + 0.5

    api.fail(faults.unavailable(), method="PATCH", path="configmaps/a$")
    api.fail(faults.forbidden("get"), when=is_starting, times=1000)
    Instance(api.url).reconcile([config_map("a"), config_map("b")])
    assert api.names("ConfigMap", "default")[:2] == ["a", "b"]


def test_an_end_of_watches_may_be_that_of_their_server(api: FakeApi) -> None:
    """A load balancer hides all else of a restart."""
    blue = Instance(api.url)
    run = blue.start([crontab_crd(**CONDITIONS), crontab("one"), late(config_map("late"))])
    blue.wait_until_reported("one", "Waiting")
    api.fail(faults.forbidden("patch"), method="PATCH", path="configmaps/late$")
    api.break_streams(faults.stream_reset(), "CronTab")
    assert api.wait_for_streams(3)
    api.set_status("CronTab", "default", "one", status())
    run.result(10)
    assert api.faults_pending == 0


def late(manifest: Object) -> Object:
    """It waits for the CronTab."""
    return annotated(manifest, {DEPENDS_ON: "stable.example.com/namespaces/default/CronTab/one"})


def test_a_certificate_of_another_authority_is_one_clear_error(tls_api: FakeApi) -> None:
    with FakeApi(tls=True) as other:
        endpoint = Endpoint(tls_api.url, ca=other.ca_cert or "")
    with Connection(endpoint) as connection, pytest.raises(ConnectionFailed) as raised:
        connection.request("GET", "/version")
    assert str(raised.value) == (
        f"The certificate of {tls_api.url} was not accepted: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
        "unable to get local issuer certificate."
    )


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_the_right_authority_is_accepted_and_none_at_all_only_if_it_is_asked_for(tls_api: FakeApi) -> None:
    for endpoint in (Endpoint(tls_api.url, ca=tls_api.ca_cert or ""), Endpoint(tls_api.url, verify=False)):
        with Connection(endpoint) as connection:
            assert connection.request("GET", "/version")["gitVersion"]
    with Connection(Endpoint(tls_api.url)) as connection, pytest.raises(ConnectionFailed, match="certificate"):
        connection.request("GET", "/version")


def test_an_endpoint_that_nobody_serves_is_one_clear_error(api: FakeApi) -> None:
    api.close()
    with pytest.raises(TransportError, match=rf"cannot connect to {api.url}"):
        Instance(api.url).reconcile([config_map("a")])


@pytest.mark.parametrize(
    "message",
    [
        'roles.rbac.authorization.k8s.io "a" is forbidden: user "u" is attempting to grant RBAC permissions not currently '
        'held:\n{APIGroups:["*"]}; resolution errors: [clusterroles.rbac.authorization.k8s.io "gone" not found]',
        'configmaps "a" is forbidden: User "u" cannot patch resource "configmaps": RBAC: '
        'clusterrole.rbac.authorization.k8s.io "gone" not found',
    ],
)
def test_a_403_of_rbac_itself_ends_the_run_though_it_says_not_found(api: FakeApi, message: str) -> None:
    api.fail(faults.status(403, "Forbidden", message), method="PATCH", path="configmaps/a$", times=1000)
    with pytest.raises(Forbidden):
        Instance(api.url).reconcile([config_map("a")])
    assert len(api.requests.select("PATCH", "configmaps/a")) == 1


def test_a_kind_is_watched_and_listed_only_in_the_namespaces_where_the_instance_has_objects_of_it(api: FakeApi) -> None:
    """An account that may use Secrets in one namespace of the instance, and ConfigMaps in the other."""
    api.knobs.denied |= {(verb, "", "secrets", where) for verb in ("list", "watch") for where in (EVERYWHERE, "default")}
    objects = [obj("v1", "Namespace", "blue"), obj("v1", "Secret", "a", "blue"), config_map("b")]
    blue = Instance(api.url)
    blue.reconcile([*objects, obj("v1", "Secret", "c", "blue")])
    blue.reconcile(objects)
    assert api.names("Secret", "blue") == ["a"]
    blue.terminate()
    assert state(api) == {}
