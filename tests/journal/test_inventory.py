# SPDX-License-Identifier: Apache-2.0
"""The inventory: found again after any crash, held by one run at a time, a superset of what is there."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Iterator

import pytest

from k8s_cr_driver.errors import Contended, Forbidden, Refused, Superseded, TransportError
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.journal.stored_form import VERSION, InventoryContent, parse, parse_foreign
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey
from k8s_cr_driver.objects.marks import is_managed, manager, used_by, users
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, GREEN, Instance, config_map
from tests.journal import stored_inventories
from tests.times import change_times

MAPS, JOBS = GroupKind("", "ConfigMap"), GroupKind("batch", "Job")
ADOPTED = ObjectKey("", "ConfigMap", "blue", "theirs")
NAME = f"k8s-cr-driver-{BLUE}"


@pytest.fixture
def connection(api: FakeApi) -> Iterator[Connection]:
    with Connection(Endpoint(api.url)) as one:
        yield one


@pytest.fixture
def distrust(monkeypatch: pytest.MonkeyPatch) -> None:
    """No word on the token is believed for any time."""
    change_times(monkeypatch, trusted=-1)


def claimed(connection: Connection, instance: str = BLUE) -> Inventory:
    one = Inventory(connection, "default", instance)
    assert one.claim("operation-1", [MAPS], ["blue"], create=True, unread=True)
    return one


def test_the_inventory_is_an_applyset_parent(api: FakeApi, connection: Connection) -> None:
    claimed(connection)
    metadata = api.get("ConfigMap", "default", NAME)["metadata"]
    digest = hashlib.sha256(f"{NAME}.default.ConfigMap.".encode()).digest()
    applyset = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert metadata["labels"]["applyset.kubernetes.io/id"] == f"applyset-{applyset}-v1"
    marks = metadata["annotations"]
    assert marks["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap"
    assert marks["applyset.kubernetes.io/additional-namespaces"] == "blue"
    assert marks["applyset.kubernetes.io/tooling"].startswith("k8s-cr-driver/")
    assert marks["k8s-cr-driver/operation"] == "operation-1"


def test_each_claim_widens_the_inventory_and_keeps_adoptions(connection: Connection) -> None:
    first = claimed(connection)
    first.adopt({ADOPTED: "uid"})
    second = Inventory(connection, "default", BLUE)
    assert second.claim("operation-2", [JOBS], ["green"], create=True)
    assert second.content.kinds == {MAPS, JOBS}
    assert second.content.namespaces == {"blue", "green"}
    assert second.content.adopted == {ADOPTED}
    assert (first.is_new, second.is_new) == (True, False)
    assert second.read() == second.content


def test_is_new_survives_a_lost_response(api: FakeApi, connection: Connection) -> None:
    one = Inventory(connection, "default", BLUE)
    api.fail(faults.reset_after(), method="PATCH")
    with pytest.raises(TransportError):
        one.claim("operation", [MAPS], ["blue"], create=True)
    assert not one.is_new
    assert one.claim("operation", [MAPS], ["blue"], create=True)
    assert one.is_new


def test_claim_creates_an_inventory_only_if_asked_to(api: FakeApi, connection: Connection) -> None:
    one = Inventory(connection, "default", BLUE)
    assert one.read() is None
    assert not one.claim("operation", [], [], create=False)
    assert api.names("ConfigMap") == []


def test_a_run_that_was_superseded_can_change_and_delete_nothing(
    api: FakeApi, connection: Connection, distrust: None
) -> None:
    first = claimed(connection)
    second = claimed(connection)
    before = api.get("ConfigMap", "default", NAME)
    changes = (lambda: first.adopt({ADOPTED: "uid"}), first.delete, first.fence.before_write)
    for attempt in (*changes, lambda: first.fence.check(second.content)):
        with pytest.raises(Superseded, match=f"Another worker took over VNF instance {BLUE}"):
            attempt()
    assert api.get("ConfigMap", "default", NAME) == before
    second.fence.before_write()
    second.delete()
    assert api.names("ConfigMap") == []


def test_of_two_concurrent_claims_the_last_wins(api: FakeApi, connection: Connection, distrust: None) -> None:
    other = config_map(NAME)
    other["metadata"]["annotations"] = {"applyset.kubernetes.io/contains-group-kinds": "Job.batch"}
    other["metadata"]["labels"] = {"k8s-cr-driver/inventory": BLUE}

    def overtakes(request: Request) -> bool:
        if not api.names("ConfigMap"):
            api.put(other, manager="k8s-cr-driver")
        return False

    api.fail(faults.conflict(), method="PATCH", when=overtakes)
    one = claimed(connection)
    assert one.content.kinds == {MAPS, JOBS}
    assert [request.status for request in api.requests.select("PATCH")] == [409, 200]
    one.fence.before_write()


@pytest.mark.parametrize("fault", [faults.reset_after(), faults.truncated()])
def test_a_write_whose_response_was_lost_is_not_taken_for_another_worker(
    api: FakeApi, connection: Connection, fault: faults.Action
) -> None:
    one = claimed(connection)
    api.fail(fault, method="PATCH")
    with pytest.raises(Exception, match="PATCH"):
        one.adopt({ADOPTED: "uid"})
    one.adopt({ADOPTED: "uid"})
    assert one.read() == one.content
    api.fail(fault, method="DELETE")
    with pytest.raises(Exception, match="DELETE"):
        one.delete()
    one.delete()
    assert api.names("ConfigMap") == []


def test_an_unchanged_inventory_is_not_written(api: FakeApi, connection: Connection) -> None:
    one = claimed(connection)
    api.requests.clear()
    one.adopt(dict(one.content.adopted_uids))
    assert len(api.requests) == 0


def test_a_confirmed_token_is_trusted_for_a_while(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, trusted=60)
    one = claimed(connection)
    api.requests.clear()
    one.fence.before_write()
    assert len(api.requests) == 0
    change_times(monkeypatch, trusted=-1)
    one.fence.before_write()
    change_times(monkeypatch, trusted=60)
    one.fence.before_write()
    assert len(api.requests) == 1


def test_a_namespace_that_is_missing_or_forbidden_is_named_with_the_option(api: FakeApi, connection: Connection) -> None:
    with pytest.raises(Forbidden, match=r"Namespace nowhere does not exist: create it, or set \[k8s_cr\] inventory_namespace"):
        Inventory(connection, "nowhere", BLUE).claim("operation", [], [], create=True)
    api.knobs.denied.add(("patch", "", "configmaps", "default"))
    with pytest.raises(Forbidden, match=r"keeps its inventory in ConfigMap default/.*inventory_namespace"):
        claimed(connection)


def test_others_returns_the_inventories_of_other_instances(connection: Connection) -> None:
    blue = claimed(connection)
    green = Inventory(connection, "default", GREEN)
    green.claim("operation", [JOBS], ["shared"], create=True)
    assert [record.namespaces for record in blue.others()] == [{"shared", "default"}]
    green.withdraw(set(), {"shared"})
    assert [record.namespaces for record in blue.others()] == [{"default"}]


def test_an_apply_makes_an_object_ours_and_a_copied_label_does_not() -> None:
    live = config_map("a")
    live["metadata"]["labels"] = {"tacker_vnf_instance_id": BLUE, used_by(BLUE): "", used_by(GREEN): ""}
    assert not is_managed(live, BLUE)
    live["metadata"]["managedFields"] = [{"manager": manager(BLUE), "operation": "Apply"}]
    assert is_managed(live, BLUE) and not is_managed(live, GREEN)
    assert users(live) == {BLUE, GREEN}


def test_an_inventory_without_annotations_is_empty() -> None:
    live = config_map("a")
    live["metadata"] |= {"uid": "u", "resourceVersion": "5"}
    assert parse(live) == InventoryContent(resource_version="5", uid="u", members=None)


def test_anothers_inventory_makes_sense_only_in_a_namespace() -> None:
    live = config_map("a", "team")
    marks = {"contains-group-kinds": "ConfigMap", "additional-namespaces": "default"}
    live["metadata"]["annotations"] = {f"applyset.kubernetes.io/{name}": value for name, value in marks.items()}
    found = parse_foreign(live)
    assert found and (found.kinds, found.namespaces) == ({GroupKind("", "ConfigMap")}, {"default", "team"})
    del live["metadata"]["namespace"]
    assert parse_foreign(live) is None


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


def test_a_policy_that_denies_the_inventory_is_named_with_the_remedy(api: FakeApi) -> None:
    denied = faults.status(403, "Forbidden", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no ConfigMaps")
    api.fail(denied, method="PATCH", path="/configmaps/k8s-cr-driver-")
    with pytest.raises(Forbidden, match="exempt it from the webhook or policy, or delete that, also if it is of this VNF"):
        Instance(api.url).reconcile([config_map("a")])


def test_a_hundred_thousand_objects_fit(api: FakeApi, connection: Connection) -> None:
    kinds = [GroupKind(f"group{number}.example.com", f"Kind{number}") for number in range(300)]
    keys = frozenset(
        ObjectKey(*kinds[number % 300], f"namespace-{number % 1000:04d}", f"object-{number:06d}") for number in range(100_000)
    )
    one = Inventory(connection, "default", BLUE)
    one.claim("operation", kinds, {key.namespace for key in keys}, create=True, members=keys)
    one.adopt({key: str(uuid.uuid4()) for key in keys})
    found = one.read()
    assert found == one.content
    assert found.members == found.adopted == keys


def test_kinds_are_looked_for_only_where_the_instance_has_objects_of_them(connection: Connection) -> None:
    one = Inventory(connection, "default", BLUE)
    members = [ObjectKey(*MAPS, "blue", "a"), ObjectKey(*JOBS, "green", "b")]
    one.claim("operation", [MAPS, JOBS], ["blue", "green"], create=True, members=members)
    assert (one.content.places(MAPS), one.content.places(JOBS)) == (["blue"], ["green"])


@pytest.mark.parametrize("form", ["ADOPTED_AS_ANNOTATION", "WITH_MEMBERS", "VERSION_1"])
def test_an_inventory_of_each_released_form_is_read(api: FakeApi, connection: Connection, form: str) -> None:
    stored: Object = getattr(stored_inventories, form)
    own = {"name": NAME, "namespace": "default", "labels": {"k8s-cr-driver/inventory": BLUE}}
    api.put({**stored, "metadata": {**stored["metadata"], **own}}, manager="k8s-cr-driver")
    one = Inventory(connection, "default", BLUE)
    assert one.claim("operation", [], [], create=False)
    first, job = ObjectKey(*MAPS, "blue", "a"), ObjectKey(*JOBS, "green", "b")
    content = one.content
    assert (content.kinds, content.namespaces, content.adopted) == ({MAPS, JOBS}, {"blue", "green"}, {first})
    if form == "ADOPTED_AS_ANNOTATION":
        assert (content.members, content.finished, content.places(MAPS)) == (None, frozenset(), ["blue", "green"])
    else:
        assert (content.members, content.finished) == ({first, job}, {(job, "0123456789abcdef")})
    assert one.read() == content
    assert content.version == VERSION


def test_an_inventory_of_a_newer_version_is_refused_before_any_write(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    api.edit("ConfigMap", "default", NAME, lambda live: live["metadata"]["annotations"].update({"k8s-cr-driver/version": "2"}))
    api.edit("ConfigMap", "default", NAME, lambda live: live["data"].update(members="in another form"))
    api.requests.clear()
    for desired in ([], [config_map("b")]):
        with pytest.raises(Refused, match="has version 2: a newer k8s-cr-driver has written it"):
            blue.reconcile(desired)
    assert [one for one in api.requests.writes if one.method != "POST" and one.status != 409] == []


def test_ten_thousand_finished_jobs_are_stored_compressed(api: FakeApi, connection: Connection) -> None:
    one = claimed(connection)
    keys = [ObjectKey(*JOBS, "blue", f"job-{number}") for number in range(10_000)]
    digests = {key: hashlib.sha256(key.name.encode()).hexdigest()[:16] for key in keys}
    for key, digest in digests.items():
        one.note_finished(key, digest)
    one.adopt({ADOPTED: "uid"})
    assert len(json.dumps(api.get("ConfigMap", "default", NAME))) < 200_000
    found = one.read()
    assert found is not None
    assert dict(found.finished) == digests


def test_a_config_map_with_the_label_alone_is_no_inventory(api: FakeApi, connection: Connection) -> None:
    blue = claimed(connection)
    for name, instance in (("theirs", GREEN), (f"k8s-cr-driver-{GREEN}", GREEN), ("odd", "odd")):
        other = config_map(name, adopted="no JSON")
        other["metadata"]["labels"] = {"k8s-cr-driver/inventory": instance}
        api.put(other)
    assert blue.others() == []


def test_an_inventory_with_malformed_data_counts_with_its_namespaces(api: FakeApi, connection: Connection) -> None:
    blue, green = claimed(connection), Inventory(connection, "default", GREEN)
    green.claim("operation", [JOBS], ["shared"], create=True)
    api.edit("ConfigMap", "default", green.key.name, lambda live: live["data"].update(members="no JSON"))
    assert [record.namespaces for record in blue.others()] == [{"shared", "default"}]


@pytest.mark.parametrize(
    "data",
    [
        {"members": "no JSON"},
        {"adopted": "no JSON"},
        {"members": r'{"ConfigMap":{"default":["a\nERROR"]}}'},
        {"finished": r'[["","Job","a\u001b","b","x"]]'},
    ],
)
def test_an_inventory_that_others_have_spoiled_is_malformed(api: FakeApi, connection: Connection, data: dict[str, str]) -> None:
    blue = claimed(connection)
    api.edit("ConfigMap", "default", NAME, lambda live: live["data"].update(data))
    with pytest.raises(TransportError, match=r"is malformed.*delete that ConfigMap"):
        blue.read()


@pytest.mark.parametrize("label", [BLUE, GREEN, None])
@pytest.mark.parametrize("writer", ["kubectl", "k8s-cr-driver"])
def test_a_config_map_of_that_name_alone_is_no_inventory(api: FakeApi, label: str | None, writer: str) -> None:
    """Its content would decide what a terminate deletes, and what it leaves."""
    forged = config_map(NAME, members='{"ConfigMap":{"default":["a"]}}')
    forged["metadata"]["labels"] = {"k8s-cr-driver/inventory": label} if label else {}
    api.put(forged, manager=writer)
    before = api.get("ConfigMap", "default", NAME)
    if writer == "k8s-cr-driver" and label != GREEN:
        Instance(api.url).terminate()
        return
    with pytest.raises(Refused, match=r"has the name of the inventory .* Delete it"):
        Instance(api.url).terminate()
    assert api.get("ConfigMap", "default", NAME) == before
