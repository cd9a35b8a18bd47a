# SPDX-License-Identifier: Apache-2.0
"""Manifests that the functional tests are made of."""

from typing import Any, NamedTuple

Object = dict[str, Any]

CONDITIONS = {
    "observedGeneration": {"type": "integer"},
    "replicas": {"type": "integer"},
    "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}


def make(api_version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def config_map(name: str, namespace: str = "", **data: str) -> Object:
    return make("v1", "ConfigMap", name, namespace, data=data)


def namespace(name: str) -> Object:
    return make("v1", "Namespace", name)


def pod(name: str, namespace: str = "") -> Object:
    spec = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "web", "image": "nginx"}]}
    return make("v1", "Pod", name, namespace, spec=spec)


def volume_claim(name: str, namespace: str = "") -> Object:
    """It stays Pending: the bed has no volumes."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return make("v1", "PersistentVolumeClaim", name, namespace, spec=spec)


def claim_of(volume: str) -> Object:
    """A claim of the name of the volume that it is to have."""
    size = {"requests": {"storage": "32Mi"}}
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": volume, "resources": size}
    return make("v1", "PersistentVolumeClaim", volume, spec=spec)


def pod_with_claim(name: str, claim: str, line: str, node: str = "") -> Object:
    """A Pod that runs a line of shell once, with the claim at /data; on that node, if one is given."""
    container = {
        "name": "one",
        "image": "bed.test/web:1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-euc", line],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    spec = {
        "restartPolicy": "Never",
        "securityContext": {"runAsUser": 65534},
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        **({"nodeName": node} if node else {}),
    }
    return make("v1", "Pod", name, spec=spec)


def deployment(name: str, replicas: int = 1, image: str = "nginx", namespace: str = "") -> Object:
    labels = {"app": name}
    pod = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "web", "image": image}]}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return make("apps/v1", "Deployment", name, namespace, spec=spec)


def quota(namespace: str, **hard: int) -> Object:
    """Named `quota`; no more of what `hard` names than it says."""
    return make("v1", "ResourceQuota", "quota", namespace, spec={"hard": {name: str(count) for name, count in hard.items()}})


def annotated(manifest: Object, **annotations: str) -> Object:
    """With annotations of k8s-cr-driver/, their names with hyphens for underscores."""
    marks = {f"k8s-cr-driver/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": marks}}


class Place(NamedTuple):
    """Where the tests of a module work beside those of others: a Namespace and an API group, both of this name."""

    name: str

    @property
    def group(self) -> str:
        return f"{self.name}.example.com"

    @property
    def version(self) -> str:
        return f"{self.group}/v1"

    def crd(self, kind: str, *, scope: str = "Namespaced", status: bool = False, scale: bool = False) -> Object:
        """Of `kind` in the group, with any spec; with `status` as controllers keep it, and with the subresource scale."""
        plural = f"{kind.lower()}s"
        properties: Object = {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        subresources: Object = {}
        if status:
            properties["status"] = {"type": "object", "properties": CONDITIONS}
            subresources["status"] = {}
        if scale:
            properties["spec"] = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
            subresources["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        schema = {"type": "object", "properties": properties}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        spec = {
            "group": self.group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{**version, "subresources": subresources} if subresources else version],
        }
        return make("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{self.group}", spec=spec)

    def custom(self, kind: str, name: str, namespace: str = "", **spec: Any) -> Object:
        """A custom resource of the group."""
        return make(self.version, kind, name, namespace, spec=spec)
