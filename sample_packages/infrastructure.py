# SPDX-License-Identifier: Apache-2.0
"""The infrastructure provider of the management cluster: one whose manifests are rendered here, or a file of the user's.

Such a file is what `clusterctl generate provider --infrastructure NAME` prints.
"""

import shutil
from pathlib import Path
from typing import Any

import click
import yaml

from builds.manifests import in_memory, openstack, rendered
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.package import tosca_meta

from . import vnfd

DEFAULT = "in-memory"
PROVIDERS = {DEFAULT: in_memory, "openstack": openstack}
SAMPLE = "cluster_api_management"
"""The sample package that holds a provider."""

_FILE = "infrastructure.yaml"
_VDU = ("k8s-cr-driver/vdu", "Infrastructure")
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader), getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def families(chosen: str) -> tuple[str, ...]:
    """The Go module families of a provider; none of a file's."""
    return PROVIDERS[chosen].FAMILIES if chosen in PROVIDERS else ()


def add(package: Path, chosen: str) -> None:
    """Put the provider's manifests into the package's folder; its Deployment becomes the VDU Infrastructure.

    A package with another provider than the default one is another VNFD, so that both can be onboarded.
    """
    manifests = package / tosca_meta.MANIFESTS
    if chosen in PROVIDERS:
        shutil.copytree(rendered(PROVIDERS[chosen]), manifests, dirs_exist_ok=True)
    else:
        shutil.copyfile(chosen, manifests / _FILE)
    _make_vdu(manifests / _FILE, chosen)
    if chosen != DEFAULT:
        vnfd.rename(package, (manifests / _FILE).read_text())


def _make_vdu(file: Path, chosen: str) -> None:
    loader, dumper = _YAML
    try:
        documents = [document for document in yaml.load_all(file.read_text(), loader) if document]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--infrastructure {chosen} is not YAML: {error}") from None
    metadata = _deployment(documents, chosen)["metadata"]
    metadata["annotations"] = {**_annotations(metadata), **dict([_VDU])}
    file.write_text(yaml.dump_all(documents, Dumper=dumper, sort_keys=False))


def _annotations(metadata: Any) -> dict[str, Any]:
    return mapping(metadata, "annotations")


def _deployment(documents: list[Any], chosen: str) -> Any:
    """The provider's only Deployment, or the one that the user has annotated."""
    found = [one for one in documents if mapping(one, "metadata") and one.get("kind") == "Deployment"]
    annotated = [one for one in found if _VDU in _annotations(one["metadata"]).items()]
    if len(annotated or found) != 1:
        raise click.UsageError(
            f"--infrastructure {chosen} holds {len(found)} Deployments: "
            f"annotate the one that is the provider with {': '.join(_VDU)}"
        )
    return (annotated or found)[0]
