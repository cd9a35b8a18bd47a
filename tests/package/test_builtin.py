# SPDX-License-Identifier: Apache-2.0
"""Built-in kinds: which Kubernetes serves, and what the API server refuses of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builds import kinds
from k8s_cr_driver.objects.api_groups import GROUPS
from k8s_cr_driver.objects.keys import GroupKind, Object
from k8s_cr_driver.package import builtin, builtin_rules, schema
from tests.instance import config_map, deployment, obj

APPS, BATCH = "apps/v1", "batch/v1"
POD: dict[str, Any] = {"containers": [{"name": "c", "image": "c:1"}]}


def test_the_groups_are_those_that_the_driver_takes_for_built_in() -> None:
    content = json.loads(kinds.FILE.read_text())
    served = {name.rpartition("/")[0] for name in content["kinds"]}
    assert served == GROUPS
    assert set(content["kinds"]["apps/Deployment"]["versions"]) == {"v1"}


def test_the_file_is_what_the_command_writes() -> None:
    content = json.loads(kinds.FILE.read_text())
    assert kinds.text(content) == kinds.FILE.read_text()


def test_fields_become_codes() -> None:
    swagger = {
        "paths": {
            "/apis/apps/v1/namespaces/{namespace}/webs": {
                "post": {"x-kubernetes-group-version-kind": {"group": "apps", "version": "v1", "kind": "Web"}}
            },
            "/apis/apps/v1/namespaces/{namespace}/webs/{name}/scale": {
                "post": {"x-kubernetes-group-version-kind": {"group": "apps", "version": "v1", "kind": "Scale"}}
            },
        },
        "definitions": {
            "io.k8s.api.apps.v1.Web": {
                "required": ["spec"],
                "properties": {
                    "spec": {"$ref": "#/definitions/io.k8s.api.apps.v1.WebSpec"},
                    "port": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
                },
                "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Web"}],
            },
            "io.k8s.api.apps.v1.WebSpec": {
                "properties": {
                    "again": {"type": "array", "items": {"$ref": "#/definitions/io.k8s.api.apps.v1.WebSpec"}},
                    "count": {"type": "integer", "format": "int32"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                }
            },
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string"},
        },
    }
    assert kinds.compact(swagger, "1.2.3") == {
        "kubernetes": "1.2.3",
        "kinds": {"apps/Web": {"namespaced": True, "versions": {"v1": "apps.v1.Web"}}},
        "types": {
            "apps.v1.Web": {"port": "q", "spec!": "apps.v1.WebSpec"},
            "apps.v1.WebSpec": {"again": "[apps.v1.WebSpec", "count": "i", "labels": "{s"},
        },
    }


@pytest.mark.parametrize(
    ("group", "version", "kind", "namespaced"),
    [
        ("apps", "v1", "Deployment", True),
        ("", "v1", "Namespace", False),
        ("", "v1", "Event", True),
        ("resource.k8s.io", "v1", "DeviceClass", False),
        ("apps", "v1beta1", "Deployment", None),
        ("apps", "v1", "Deploymint", None),
        ("stable.example.com", "v1", "CronTab", None),
    ],
)
def test_the_scopes_of_kinds(group: str, version: str, kind: str, namespaced: bool | None) -> None:
    assert builtin.is_namespaced(GroupKind(group, kind), version) is namespaced


@pytest.mark.parametrize(
    ("group", "kind", "wanted"),
    [
        ("extensions", "Ingress", "networking.k8s.io/v1 Ingress"),
        ("", "Deployment", "apps/v1 Deployment"),
        ("apps", "Deploymnt", "apps/v1 Deployment"),
        ("autoscaling", "HorizontalPodAutoscaler", "autoscaling/v2 HorizontalPodAutoscaler"),
        ("batch", "Pod", "v1 Pod"),
        ("policy", "PodSecurityPolicy", ""),
    ],
)
def test_what_to_write_for_a_kind_that_is_served_no_longer(group: str, kind: str, wanted: str) -> None:
    assert builtin.instead(GroupKind(group, kind)) == wanted


def changed(base: Object, *path: str, value: Any) -> Object:
    made: Object = json.loads(json.dumps(base))
    *way, last = path
    part: Any = made
    for step in way:
        part = part[int(step) if isinstance(part, list) else step]
    part[last] = value
    return made


CONTAINER = ("spec", "template", "spec", "containers", "0")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (deployment(), ""),
        (changed(deployment(), "metadata", "creationTimestamp", value=None), ""),
        (changed(deployment(), *CONTAINER, "resources", value={"limits": {"cpu": 1.5, "memory": "1Gi"}}), ""),
        (changed(deployment(), "status", value={"any": 1}), ""),
        (obj("v1", "Service", "s", spec={"ports": [{"port": 80, "targetPort": "http"}]}), ""),
        (changed(deployment(), "metadata", "lables", value={}), "metadata.lables: unknown field"),
        (changed(deployment(), *CONTAINER, "imagePullPolcy", value="x"), "did you mean imagePullPolicy?"),
        (changed(deployment(), "spec", "replicas", value="3"), "spec.replicas: is text, must be integer"),
        (changed(deployment(), *CONTAINER, "env", value=[{"name": "A", "value": True}]), "value: is a boolean, must be string"),
        (obj("v1", "Service", "s", spec={"ports": [{"targetPort": 80}]}), "spec.ports[0].port: is missing and required"),
        (obj("stable.example.com/v1", "CronTab", "one", spec={"any": 1}), ""),
        (
            changed(obj("stable.example.com/v1", "CronTab", "one"), "metadata", "anotations", value={}),
            "did you mean annotations?",
        ),
    ],
)
def test_fields_of_built_in_kinds(given: Object, problem: str) -> None:
    found = list(schema.builtin_problems([given]))
    assert (problem in found[0]) if problem else not found


def job(policy: str | None) -> Object:
    return obj(BATCH, "Job", "j", spec={"template": {"spec": POD if policy is None else {**POD, "restartPolicy": policy}}})


SELECTOR = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (deployment(), ""),
        (changed(deployment(), "spec", "selector", value={"matchLabels": {"app": "other"}}), "has another value"),
        (changed(deployment(), "spec", "selector", value={"matchLabels": {"tier": "web"}}), "matchLabels.tier: is missing in"),
        (changed(deployment(), "spec", "selector", value=SELECTOR), "app NotIn does not fit"),
        (deployment(restartPolicy="Never"), "must be Always in this kind"),
        (job(None), "must be Never or OnFailure in a Job"),
        (job("OnFailure"), ""),
        (config_map("a", text="x" * builtin_rules.DATA_LIMIT), ""),
        (config_map("a", text="x" * builtin_rules.DATA_LIMIT, more="y"), "data: has 1,048,577 bytes"),
    ],
)
def test_rules_of_built_in_kinds(given: Object, problem: str) -> None:
    found = builtin_rules.problems([given])
    assert (problem in found[0]) if problem else not found
