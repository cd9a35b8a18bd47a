# SPDX-License-Identifier: Apache-2.0
"""What a CustomResourceDefinition says about the status of its objects.

One published CRD in seven declares no status: its objects are ready once stored. Where a status is declared, its
absence means that no controller has looked at the object yet, which is the most frequent wrong "ready" of all.
"""

from __future__ import annotations

from typing import Any

from k8s_cr_driver.resources.health.fields import dig, mapping, mappings, text

PRESERVE = "x-kubernetes-preserve-unknown-fields"


def _version(crd: dict[str, Any], api_version: str) -> dict[str, Any]:
    name = api_version.rsplit("/", 1)[-1]
    versions = mappings(dig(crd, "spec", "versions"))
    return next((version for version in versions if version.get("name") == name), {})


def _schema(version: dict[str, Any]) -> dict[str, Any]:
    return mapping(dig(version, "schema", "openAPIV3Schema"))


def is_template(crd: dict[str, Any], api_version: str) -> bool:
    """Whether a spec of this version holds a template and nothing else: nobody acts on the object itself."""
    return mapping(dig(_schema(_version(crd, api_version)), "properties", "spec", "properties")).keys() == {"template"}


def status_fields(crd: dict[str, Any], api_version: str) -> dict[str, Any] | None:
    """The schemas of the fields that a status can have in this version; empty if any can; None without a status.

    A status that is declared without fields ("type: object" and no more, as scaffolded) counts as none: the API server
    prunes whatever a controller would write there.
    """
    version = _version(crd, api_version)
    schema = _schema(version)
    status = dig(schema, "properties", "status")
    if isinstance(status, dict):
        if status.get(PRESERVE) is True or status.get("additionalProperties"):
            return {}
        return mapping(status.get("properties")) or None
    untyped = schema.get(PRESERVE) is True and isinstance(dig(version, "subresources", "status"), dict)
    # A CRD that does not describe this version cannot rule a status out
    return {} if untyped or not version else None


def group_kind(live: dict[str, Any]) -> tuple[str, str]:
    """API group (empty for the core group) and kind of an object."""
    api_version = text(live.get("apiVersion"))
    return api_version.rpartition("/")[0], text(live.get("kind"))
