# SPDX-License-Identifier: Apache-2.0
"""Packages of which one field holds something else than it should."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from k8s_cr_driver.objects.keys import Object
from tests.instance import config_map, crontab, crontab_crd, obj

Path = tuple[str | int, ...]

_LABELS = {"app": "web"}
_POD = {
    "serviceAccountName": "web",
    "volumes": [
        {"name": "v", "configMap": {"name": "a"}},
        {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}]}},
    ],
    "containers": [
        {
            "name": "c",
            "image": "c:1",
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "envFrom": [{"configMapRef": {"name": "a"}}],
        }
    ],
}
_SERVICE = {"clientConfig": {"service": {"name": "hook", "namespace": "default"}}}
_RULE = {"apiGroups": ["stable.example.com"], "resources": ["crontabs"], "verbs": ["*"]}


def _definition() -> Object:
    crd = crontab_crd()
    (version,) = crd["spec"]["versions"]
    version["subresources"] = {"scale": {"specReplicasPath": ".spec.size", "labelSelectorPath": ".status.selector"}}
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] = {"type": "integer", "default": 1}
    crd["spec"]["conversion"] = {"webhook": _SERVICE}
    return crd


GOOD: list[Object] = [
    obj(
        "apps/v1",
        "Deployment",
        "web",
        "default",
        spec={
            "replicas": 1,
            "selector": {"matchLabels": _LABELS, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            "template": {"metadata": {"labels": _LABELS}, "spec": _POD},
        },
    ),
    config_map("a"),
    obj("v1", "Secret", "s", "default", data={"k": "YQ=="}, stringData={"l": "x"}),
    obj("v1", "Service", "hook", "default", spec={"selector": _LABELS, "ports": [{"port": 443}]}),
    obj("v1", "ServiceAccount", "web", "default"),
    obj("rbac.authorization.k8s.io/v1", "ClusterRole", "web", rules=[_RULE]),
    obj(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "web",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "web"},
        subjects=[{"kind": "ServiceAccount", "name": "web", "namespace": "default"}],
    ),
    obj(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "hook",
        webhooks=[{"name": "a.b.c", **_SERVICE, "rules": [_RULE]}],
    ),
    _definition(),
    crontab("tab"),
]
"""A set that uses about everything that is read of manifests before they are written."""


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where every value within `value` is."""
    for step, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, step)
        yield from paths(inner, (*path, step))


def replaced(objects: list[Object], path: Path, value: Any) -> list[Object]:
    """A copy of `objects` with `value` at `path`."""
    result: Any = copy.deepcopy(objects)
    parent = result
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return list(result)


def versions(good: list[Object]) -> st.SearchStrategy[list[Object]]:
    """Of `good`, with one value, however deep, that is another one."""
    odd = st.sampled_from([None, True, -1, 1.5, 10**30, "", "x", "\N{SNOWMAN}", [], [None], ["x"], [[]], [{}], {}, {"x": None}])
    return st.builds(replaced, st.just(good), st.sampled_from(list(paths(good))), odd)
