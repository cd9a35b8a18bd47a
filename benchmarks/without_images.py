# SPDX-License-Identifier: Apache-2.0
"""
The objects of a package that need no image, on a cluster: `k8s-cr run` makes them an instance and removes it.

Where no image of a chart runs, nobody writes the status of its objects, and nobody serves its webhooks and aggregated APIs.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import METADATA_LIST, Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.kubeconfig import endpoint
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.fields import field, texts
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, annotations_of, bare, key_of, kind_of
from k8s_cr_driver.objects.marks import KEEP
from k8s_cr_driver.objects.rule_texts import READY_WHEN, STORED

TOOL = (sys.executable, "-c", "from k8s_cr_driver.cli import main; main()")
_FILE = "Files/kubernetes/without-images.yaml"
_SECONDS = 120
_GONE_WITHIN = 30.0
"""Seconds, for what controllers of the cluster still delete."""
_RUN = {"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"}
_CALLED = {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
_TRANSIENT = {"Event", "Lease"}


class Tried(NamedTuple):
    """`objects` of the `of` objects of a package were tried; `failed` has what an operation said; `left` is on the cluster."""

    objects: int
    of: int
    failed: Sequence[str]
    left: Sequence[str]


def try_out(folder: Path, kubeconfig: Path) -> Tried:
    """Instantiates and removes what the package in `folder`, to which it adds a file, has without images."""
    files = texts(package_input.request_of(folder), "additionalParams", "lcm-kubernetes-def-files")
    objects = package_input.load(folder, {}, files, lenient=True)
    with Connection(endpoint(kubeconfig)) as connection:
        before = names(connection)
        kept = without_images(objects, discover(connection).is_served)
        (folder / _FILE).write_text(yaml.safe_dump_all([*missing_namespaces(kept, before), *kept]))
        failed = [line for more in ((), ("--down",)) for line in (_run(folder, kubeconfig, *more) if kept else ())]
        return Tried(len(kept), len(objects), failed, sorted(map(str, _left(connection, before))))


def without_images(objects: Sequence[Object], is_served: Callable[[GroupKind], bool]) -> list[Object]:
    """
    Copies of the objects that a cluster stores and deletes although no image of theirs runs.

    Without objects of kinds that neither the cluster nor a CRD of theirs has. All but CRDs are ready once stored; none stays at
    the end, and none waits for another by an annotation.
    """
    served = crds_of(objects)
    return [_stored(obj) for obj in objects if not _is_run(obj) and (kind_of(obj) in served or is_served(kind_of(obj)))]


def missing_namespaces(objects: Sequence[Object], there: Collection[ObjectKey]) -> list[Object]:
    """The Namespaces that objects name and that are not `there`, nor among them."""
    named = {ObjectKey(*NAMESPACE, "", key.namespace) for key in map(key_of, objects) if key.namespace}
    return [bare(key, "v1") for key in sorted(named.difference(there, map(key_of, objects)))]


def _is_run(obj: Object) -> bool:
    kind = kind_of(obj)
    is_aggregated = kind.kind == "APIService" and field(obj, "spec", "service") is not None
    return is_builtin(kind) and (kind.kind in _RUN | _CALLED or is_aggregated)


def _stored(obj: Object) -> Object:
    kept = {key: value for key, value in annotations_of(obj).items() if key not in (KEEP, DEPENDS_ON)}
    obj = copy.deepcopy(obj)
    obj["metadata"]["annotations"] = kept if kind_of(obj) == CRD else {**kept, READY_WHEN: STORED}
    return obj


def names(connection: Connection) -> set[ObjectKey]:
    """All objects of a cluster that no other owns, but for those that itself makes all the time."""
    resources = discover(connection)
    listed = [one for one in resources if one.verbs >= {"list", "watch"} and one.group_kind.kind not in _TRANSIENT]
    found: set[ObjectKey] = set()
    for resource in listed:
        try:
            lives = Client(connection, resources).list(resource, accept=METADATA_LIST)
        except ApiError as error:
            if error.status not in (404, 405):  # its CRD goes, or the kind is listed by other means
                raise
        else:
            found |= {key_of(live) for live in lives if not field(live, "metadata", "ownerReferences")}
    return found


def _left(connection: Connection, before: set[ObjectKey]) -> set[ObjectKey]:
    end = time.monotonic() + _GONE_WITHIN
    while (left := names(connection) - before) and time.monotonic() < end:
        time.sleep(0.5)
    return left


def _run(folder: Path, kubeconfig: Path, *more: str) -> Sequence[str]:
    options = ("--kubeconfig", str(kubeconfig), "--timeout", str(_SECONDS), *(more or ("--file", _FILE)))
    return refusal(*("run", str(folder), *options))


def refusal(*arguments: str) -> Sequence[str]:
    """What a command that fails prints besides its table and its warnings."""
    done = subprocess.run([*TOOL, *arguments], capture_output=True, text=True, check=False)
    if not done.returncode:
        return ()
    said = (done.stdout + done.stderr).splitlines()
    errors = [line for line in said if line.startswith(("error", "Error", "Traceback"))]
    return errors or said[-5:] or [f"exit code {done.returncode}"]
