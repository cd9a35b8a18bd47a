# SPDX-License-Identifier: Apache-2.0
"""A Namespace that holds a claim, a CRD, and the owners that operators give them."""

from __future__ import annotations

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import claim, controlled_by, kept, obj

RBAC = "rbac.authorization.k8s.io"
ROLE = obj(f"{RBAC}/v1", "ClusterRole", "owner", rules=[])
NAMESPACE = "Namespace", None, "inner"
CRD = "CustomResourceDefinition", None, "crontabs.stable.example.com"


def inner(whose: str) -> Object:
    found = claim("volume")
    found["metadata"] |= {"namespace": "inner", "annotations": {"k8s-cr-driver/ready-when": "stored"}}
    return kept(found) if whose == "kept" else found


def uid_of_volume(api: FakeApi) -> object:
    return api.get("PersistentVolumeClaim", "inner", "volume")["metadata"]["uid"]


def own_by(api: FakeApi, place: tuple[str, None, str], *owners: Object) -> None:
    """As an operator of tenants owns their Namespaces. Only a single owner is the controller."""
    references = [{**controlled_by(owner), "controller": len(owners) == 1} for owner in owners]
    api.edit(*place, lambda live: live["metadata"].update(ownerReferences=references))


def own_by_role(api: FakeApi, place: tuple[str, None, str]) -> None:
    own_by(api, place, api.get("ClusterRole", None, "owner"))
