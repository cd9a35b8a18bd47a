# SPDX-License-Identifier: Apache-2.0
"""Which Pods descend from an instance, and that a scale in annotates no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, manager
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.hooks import Scaling
from k8s_cr_driver.vnf import scale_in
from k8s_cr_driver.vnf.descent import Descent
from k8s_cr_driver.vnf.scale_in import Choice
from k8s_cr_driver.writes.owners import LONGEST_CHAIN
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import BLUE, GREEN, config_map, controlled_by, crontab, obj, scalable

COST = {"controller.kubernetes.io/pod-deletion-cost": "-1"}


def owns_all(_: ObjectKey) -> bool:
    return True


class CostScaling(Scaling):
    removal_annotations: ClassVar[Mapping[str, str]] = COST


class Marking(CustomResource):
    """A kind whose VNFCs a status selects, and whose controller removes those first that are annotated."""

    def scaling(self) -> Scaling:
        return CostScaling()


@pytest.fixture
def client(api: FakeApi) -> Iterator[Client]:
    api.put(scalable(labelSelectorPath=".status.selector"))
    with Connection(Endpoint(api.url)) as connection:
        yield Client(connection, discover(connection))


def tab(api: FakeApi, instance: str, applier: str) -> Object:
    manifest = crontab("tab")
    manifest["metadata"]["labels"] = {INSTANCE_LABEL: instance}
    return api.put(manifest, manager=applier)


def pod(api: FakeApi, owner: Object | None, name: str) -> Object:
    spec, labels = {"containers": [{"name": "c", "image": "i"}]}, {"app": "web"}
    free = obj("v1", "Pod", name, "default", spec=spec)
    free["metadata"]["labels"] = labels
    return api.put(controllers.owned(owner, "v1", "Pod", name, spec=spec, labels=labels) if owner else free)


def chain(api: FakeApi, owner: Object, length: int) -> Object:
    for number in range(length):
        link = config_map(f"link-{number}")
        link["metadata"]["ownerReferences"] = [controlled_by(owner)]
        owner = api.put(link)
    return owner


@pytest.mark.parametrize(
    ("instance", "applier", "length", "expected"),
    [
        (BLUE, manager(BLUE), 0, True),
        (BLUE, manager(BLUE), LONGEST_CHAIN - 1, True),
        (BLUE, manager(BLUE), LONGEST_CHAIN, False),
        (BLUE, "kubectl", 0, False),
        (GREEN, manager(GREEN), 0, False),
        (GREEN, manager(BLUE), 0, False),
    ],
)
def test_a_chain_has_to_end_at_an_object_that_the_instance_has_applied(
    api: FakeApi, client: Client, instance: str, applier: str, length: int, expected: bool
) -> None:
    last = chain(api, tab(api, instance, applier), length)
    assert Descent(client, BLUE, owns_all).includes(pod(api, last, "web-0")) is expected


def test_a_cycle_of_controllers_ends(api: FakeApi, client: Client) -> None:
    first = api.put(config_map("first"))
    last = chain(api, first, 1)
    api.edit("ConfigMap", "default", "first", lambda live: live["metadata"].update(ownerReferences=[controlled_by(last)]))
    assert not Descent(client, BLUE, owns_all).includes(pod(api, last, "web-0"))


@pytest.mark.parametrize("change", [{"uid": "another"}, {"controller": False}, {"kind": "Unknown"}, {"apiVersion": "none/v1"}])
def test_a_reference_to_anything_but_the_controller_of_that_uid_does_not_count(
    api: FakeApi, client: Client, change: Object
) -> None:
    child = pod(api, tab(api, BLUE, manager(BLUE)), "web-0")
    child["metadata"]["ownerReferences"][0].update(change)
    assert not Descent(client, BLUE, owns_all).includes(child)


def test_a_controller_that_may_not_be_read_is_nobody_s(api: FakeApi, client: Client) -> None:
    child = pod(api, tab(api, BLUE, manager(BLUE)), "web-0")
    api.fail(faults.status(403, "Forbidden", "no"), path="crontabs/tab")
    assert not Descent(client, BLUE, owns_all).includes(child)


def test_the_controller_of_many_pods_is_read_once(api: FakeApi, client: Client) -> None:
    owner = tab(api, BLUE, manager(BLUE))
    pods = [pod(api, owner, f"web-{number}") for number in range(5)]
    api.requests.clear()
    descent = Descent(client, BLUE, owns_all)
    assert all(map(descent.includes, pods))
    assert len(api.requests) == 1


def test_a_scale_in_annotates_only_pods_of_the_instance(api: FakeApi, client: Client) -> None:
    owner = tab(api, BLUE, manager(BLUE))
    api.set_status("CronTab", "default", "tab", {"selector": "app=web"})
    pod(api, owner, "ours")
    pod(api, None, "theirs")
    scaled = {"Web": Marking(owner, scalable(labelSelectorPath=".status.selector"))}
    scale_in.request(client, BLUE, scaled, Choice({"Web": ["ours", "theirs"]}), owns_all)
    assert annotations_of(api.get("Pod", "default", "ours")) == COST
    assert annotations_of(api.get("Pod", "default", "theirs")) == {}


@pytest.mark.parametrize("applier", [manager(BLUE), "kubectl"])
def test_a_controller_may_be_owned_instead_of_controlled(api: FakeApi, client: Client, applier: str) -> None:
    deployment = config_map("deployment")
    deployment["metadata"]["ownerReferences"] = [{**controlled_by(tab(api, BLUE, applier)), "controller": False}]
    assert Descent(client, BLUE, owns_all).includes(pod(api, api.put(deployment), "web-0")) is (applier == manager(BLUE))
