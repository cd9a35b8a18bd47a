# SPDX-License-Identifier: Apache-2.0
"""OpenStack's cloud controller manager, from the manifests of its project; its credentials are in a Secret of the cluster."""

from pathlib import Path

import yaml

from .. import controllers

NAME = "openstack-cloud-controller-manager"
FAMILIES = ("cloud-provider-openstack",)
FILES = ("cloud-controller-manager-roles.yaml", "cloud-controller-manager-role-bindings.yaml", f"{NAME}-ds.yaml")
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def render(folder: Path) -> None:
    """One file, with the parameter CLUSTER_NAME, by which two clusters of a tenant tell their load balancers apart.

    The roles name verbs, because an account that has not all verbs may not create a role that has.
    """
    source = controllers.CONTROLLERS[NAME].source() / "manifests" / "controller-manager"
    documents = [one for file in FILES for one in yaml.safe_load_all((source / file).read_text()) if one]
    objects = [obj for one in documents for obj in one.get("items", [one])]
    for rule in (rule for obj in objects for rule in obj.get("rules", ())):
        rule["verbs"] = VERBS if rule["verbs"] == ["*"] else rule["verbs"]
    for obj in (obj for obj in objects if obj["kind"] == "DaemonSet"):
        [container] = obj["spec"]["template"]["spec"]["containers"]
        [name] = (one for one in container["env"] if one["name"] == "CLUSTER_NAME")
        name["value"] = "${CLUSTER_NAME}"
    (folder / f"{NAME}.yaml").write_text(yaml.safe_dump_all(objects))
