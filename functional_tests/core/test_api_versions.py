# SPDX-License-Identifier: Apache-2.0
"""A kind in two versions without a conversion webhook, of which one has a field with a default: objects move between them."""

from ..cluster import Cluster
from ..conftest import Onboard
from ..objects import Object, Place, make
from ..packages import Package
from ..vnf import Vnf

PLACE = Place("versions")


def peers() -> Object:
    """`reconnect` with a default is only in the newer version, in which objects are stored."""
    crd = PLACE.crd("Peer")
    [version] = crd["spec"]["versions"]
    address, reconnect = {"address": {"type": "string"}}, {"reconnect": {"type": "boolean", "default": False}}
    older, newer = {**version, "storage": False}, {**version, "name": "v2"}
    crd["spec"]["versions"] = [with_fields(older, address), with_fields(newer, {**address, **reconnect})]
    return crd


def with_fields(version: Object, fields: Object) -> Object:
    spec = {"type": "object", "properties": fields}
    return {**version, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}


def package(version: str, address: str) -> Package:
    peer = make(f"{PLACE.group}/{version}", "Peer", "router", spec={"address": address})
    return Package({"peers.yaml": [peers(), peer]})


PACKAGE = package("v1", "10.0.0.1")


def test_an_object_stays_itself_when_it_is_applied_in_another_version(vnf: Vnf, cluster: Cluster, onboard: Onboard):
    vnf.instantiate("peers.yaml")
    before = cluster.get("Peer", "router", PLACE.name, f"{PLACE.group}/v2")
    assert before and before["spec"] == {"address": "10.0.0.1", "reconnect": False}
    for version, address in (("v2", "10.0.0.2"), ("v1", "10.0.0.3")):
        vnf.change(onboard(package(version, address)), "peers.yaml")
        live = cluster.get("Peer", "router", PLACE.name, f"{PLACE.group}/v2")
        assert live and live["metadata"]["uid"] == before["metadata"]["uid"]
        assert live["spec"] == {"address": address, "reconnect": False}
