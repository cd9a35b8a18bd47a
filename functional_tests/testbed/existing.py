# SPDX-License-Identifier: Apache-2.0
"""A cluster that exists, and is not the bed's: asked whether tests can run there before anything is made on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import urllib3
from kubernetes import client, config

from .preconditions import PreconditionError

# ValidatingAdmissionPolicy is of this version; the rest of what the driver needs is older.
_OLDEST = (1, 30)
_SECONDS = 10


def check(kubeconfig: Path) -> None:
    """Raises PreconditionError that names everything that the cluster misses."""
    try:
        with config.new_client_from_config(str(kubeconfig)) as api:
            missing = list(_missing(api))
            host = api.configuration.host
    except (config.ConfigException, client.ApiException, urllib3.exceptions.HTTPError) as error:
        text = str(error).strip().splitlines()[0]
        raise PreconditionError(f"the cluster of {kubeconfig} cannot be used: {text}") from None
    if missing:
        raise PreconditionError(f"the cluster {host} of {kubeconfig} misses: {'; '.join(missing)}")


def _missing(api: client.ApiClient) -> Iterator[str]:
    version = client.VersionApi(api).get_code(_request_timeout=_SECONDS)
    if (int(version.major), int(version.minor.rstrip("+"))) < _OLDEST:
        yield f"Kubernetes {_OLDEST[0]}.{_OLDEST[1]} or newer, it is {version.git_version}"
    everything = client.V1ResourceAttributes(group="*", resource="*", verb="*")
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=everything))
    judged = client.AuthorizationV1Api(api).create_self_subject_access_review(review, _request_timeout=_SECONDS)
    if not judged.status.allowed:
        yield "the role cluster-admin for the user of the kubeconfig: the tests make accounts, CRDs and namespaces"
        return
    if not any(_is_ready(node) for node in client.CoreV1Api(api).list_node(_request_timeout=_SECONDS).items):
        yield "a node that is Ready"


def _is_ready(node: client.V1Node) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or ())
