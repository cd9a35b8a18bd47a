# SPDX-License-Identifier: Apache-2.0
"""The admission policy of the operator guide keeps all but the driver's account off inventories and marks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from ..cluster import INSTANCE, Cluster
from ..objects import Object, config_map, make, namespace
from ..testbed import bed as testbed

pytestmark = pytest.mark.alone("kubernetes", "tacker")

POLICY = Path(__file__).parents[2] / "doc" / "source" / "operator" / "admission_policy.yaml"
PLACE = "admission"
INVENTORY = "k8s-cr-driver-9254ebb2-f333-4a42-a644-cbd527aa157c"
# Seconds until the API server enforces a new policy.
ENFORCED_WITHIN = 60.0

Attempt = Callable[[Cluster], Any]


def marked(name: str, api_version: str = "v1", kind: str = "ConfigMap", **metadata: Any) -> Object:
    found = make(api_version, kind, name, PLACE)
    return {**found, "metadata": {**found["metadata"], **metadata}}


USED_BY = {"used-by.k8s-cr-driver/9254ebb2": ""}
MADE = {"k8s-cr-driver/made": "true"}
FORGED = {
    "manager": INVENTORY,
    "operation": "Apply",
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:data": {"f:a": {}}},
}
ATTEMPTS: dict[str, Attempt] = {
    "another inventory": lambda user: user.create(marked(f"{INVENTORY}-2")),
    "a change of an inventory": lambda user: user.change("ConfigMap", INVENTORY, PLACE, data={"members": "{}"}),
    "a deletion of an inventory": lambda user: user.delete("ConfigMap", INVENTORY, PLACE),
    "an inventory's label": lambda user: user.create(marked("a", labels={"k8s-cr-driver/inventory": "a"})),
    "an instance's label": lambda user: user.create(marked("a", labels={INSTANCE: "a"})),
    "a user of a Namespace": lambda user: user.change("Namespace", PLACE, metadata={"labels": USED_BY}),
    "one user less": lambda user: user.change("ConfigMap", "shared", PLACE, metadata={"labels": dict.fromkeys(USED_BY)}),
    "what made it": lambda user: user.change("ConfigMap", "theirs", PLACE, metadata={"annotations": MADE}),
    "an instance's manager": lambda user: user.apply(config_map("theirs", PLACE, a="2"), INVENTORY),
    "a forged manager": lambda user: user.create(marked("a", data={"a": "1"}, managedFields=[FORGED])),
}


@pytest.fixture(scope="module")
def users(cluster: Cluster, bed: testbed.Environment) -> Iterator[dict[str, Cluster]]:
    """Two accounts with all permissions: the driver's, which the policy names, and another one."""
    accounts = {name: f"system:serviceaccount:{PLACE}:{name}" for name in ("driver", "other")}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": PLACE} for name in accounts]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = make("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", PLACE, roleRef=role, subjects=subjects)
    policy, bound = yaml.safe_load_all(POLICY.read_text().replace("system:serviceaccount:tacker:tacker", accounts["driver"]))
    # It stands between this module's tests, when others may have their turn.
    bound["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": PLACE}}}
    clusters = {name: Cluster(Path(bed["KUBECONFIG"]), account) for name, account in accounts.items()}
    with cluster.holding(namespace(PLACE), binding, policy, bound):
        yield clusters
    for one in clusters.values():
        one.close()


@pytest.fixture(scope="module", autouse=True)
def objects(users: dict[str, Cluster]) -> None:
    """What the driver has written, when the policy is enforced."""
    driver, other = users["driver"], users["other"]
    driver.create(marked(INVENTORY, labels={"k8s-cr-driver/inventory": "9254ebb2"}))
    driver.create(marked("shared", labels=USED_BY, annotations=MADE))
    driver.apply(config_map("theirs", PLACE, a="1"), INVENTORY)
    end = time.monotonic() + ENFORCED_WITHIN
    while not refused(other, ATTEMPTS["an inventory's label"]):
        other.delete("ConfigMap", "a", PLACE)
        assert time.monotonic() < end, "the policy is not enforced"


def refused(user: Cluster, attempt: Attempt) -> str:
    """The message of the policy; empty if the attempt succeeded."""
    try:
        attempt(user)
    except ApiException as error:
        assert error.status == 422 and "k8s-cr-driver-marks" in str(error.reason), error
        return str(error.reason)
    return ""


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=list(ATTEMPTS))
def test_only_the_driver_s_account_writes_inventories_and_marks(users: dict[str, Cluster], attempt: Attempt):
    assert "only the driver may" in refused(users["other"], attempt)


def test_others_write_what_is_not_marked_and_keep_marks(users: dict[str, Cluster]):
    other = users["other"]
    other.create(config_map("ordinary", PLACE, a="1"))
    other.change("ConfigMap", "shared", PLACE, metadata={"labels": {"colour": "blue"}}, data={"a": "1"})
    of_authors = {"k8s-cr-driver/keep": "true", "k8s-cr-driver/optional": "true"}
    other.change("ConfigMap", "theirs", PLACE, metadata={"annotations": of_authors})
    owner = other.create(make("v1", "Secret", "owner", PLACE))
    reference = {
        "apiVersion": "v1",
        "kind": "Secret",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    other.create(marked("copied", labels={INSTANCE: "9254ebb2"}, ownerReferences=[reference]))
    other.delete("ConfigMap", "shared", PLACE)


def test_the_driver_s_account_writes_what_it_must(users: dict[str, Cluster]):
    driver = users["driver"]
    driver.change("ConfigMap", INVENTORY, PLACE, data={"members": "{}"})
    driver.change("Namespace", PLACE, metadata={"labels": USED_BY})
    driver.change("Namespace", PLACE, metadata={"labels": dict.fromkeys(USED_BY)})
    driver.delete("ConfigMap", INVENTORY, PLACE)
