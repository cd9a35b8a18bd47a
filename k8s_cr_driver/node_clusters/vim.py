# SPDX-License-Identifier: Apache-2.0
"""The new cluster as a VIM: an account of Tacker's own in it, at the virtual IP, and an entry of vimConnectionInfo.

Tacker takes the first entry of vimConnectionInfo for its own work on the instance, so the cluster's is added as the last.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping
from typing import Any

from k8s_cr_driver.credentials import service_account, tacker
from k8s_cr_driver.kube import kubeconfig, workload
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.pools import Judge
from k8s_cr_driver.node_clusters import inventory
from k8s_cr_driver.node_clusters.parameters import VIM_TYPE
from k8s_cr_driver.objects.fields import mapping, text
from k8s_cr_driver.objects.keys import Object

CONNECTION = "vimConnectionInfo"


def of_cluster(admin: str, where: inventory.Endpoint, judge: Judge) -> Object:
    """The interfaceInfo and accessInfo of the cluster, whose administrator's kubeconfig this is. Raises DriverError."""
    given = kubeconfig.parse(admin, "the kubeconfig of the first master")
    endpoint: Endpoint = dataclasses.replace(given, url=f"https://{where.public}:{where.port}", judge=judge)
    with Connection(endpoint) as connection, workload.unquoted():
        token = service_account.token(connection)
    return {
        "interfaceInfo": {"endpoint": endpoint.url, "ssl_ca_cert": endpoint.ca},
        "accessInfo": {"bearer_token": token},
    }


def add(instance: Object, name: str, entry: Mapping[str, Any]) -> None:
    """The instance has the entry of that name as its last, with the id that it had."""
    known = mapping(instance, CONNECTION)
    identifier = text(known, name, "vimId") or str(uuid.uuid4())
    others = {key: value for key, value in known.items() if key != name}
    instance[CONNECTION] = {**others, name: {"vimId": identifier, "vimType": VIM_TYPE, "extra": {}, **entry}}


def remove(instance: Object, name: str) -> None:
    """The instance has no entry of that name."""
    instance[CONNECTION] = {key: value for key, value in mapping(instance, CONNECTION).items() if key != name}


def registered(instance: Mapping[str, Any], name: str) -> tacker.Vim:
    """The cluster of that entry as a VIM that Tacker has registered."""
    entry = mapping(instance, CONNECTION, name)
    interface = mapping(entry, "interfaceInfo")
    token = text(entry, "accessInfo", "bearer_token")
    return tacker.Vim(name, description(instance), text(interface, "endpoint"), text(interface, "ssl_ca_cert"), token)


def description(instance: Mapping[str, Any]) -> str:
    """By which a registered VIM is known as that of the instance."""
    return f"Cluster of the servers of VNF instance {instance['id']}"


def of_openstack(instance: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry on which the instance's servers are; {} after a terminate."""
    found = mapping(instance, CONNECTION).values()
    return next((one for one in found if "OPENSTACK" in text(one, "vimType")), {})
