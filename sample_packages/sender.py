# SPDX-License-Identifier: Apache-2.0
"""The credential sender in a sample package, as the README in `mgmt/credential_sender` describes it for any package."""

import shutil
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.credentials import operations
from k8s_cr_driver.credentials import settings as sender_settings

from . import vnfd

SAMPLES = (
    "cluster_api_workload",
    "cluster_api_workload_openstack",
    "cluster_api_workload_openstack_topology",
    "cluster_api_workload_topology",
)
"""Those whose instances have workload clusters."""

_SETTINGS = "Scripts/credential_sender.yaml"
_ARTIFACT = "credential-sender"


def add(package: Path, settings: Path) -> None:
    """Have the package's folder send the kubeconfigs of its clusters; `settings` is the sender's file."""
    text = settings.read_bytes().decode(errors="replace")
    if problems := sender_settings.problems(text, str(settings)):
        raise click.UsageError("\n".join(f"--sender {problem}" for problem in problems))
    (package / _SETTINGS).parent.mkdir()
    shutil.copyfile(settings, package / _SETTINGS)
    vnfd.change(package, _name_it)
    vnfd.rename(package, text)


def _name_it(node_type: dict[str, Any], vnf: dict[str, Any]) -> None:
    node_type["interfaces"]["Vnflcm"] |= {
        name: {"description": f"Invoked after {name.removesuffix('_end')}"} for name in operations.UNDECLARED
    }
    vnf["interfaces"] = {"Vnflcm": {name: {"implementation": _ARTIFACT} for name in operations.HANDLED}}
    artifact = {"type": "tosca.artifacts.Implementation.Python", "file": "../Scripts/credential_sender.py"}
    vnf["artifacts"] = {_ARTIFACT: {"description": "Sends the kubeconfigs of the workload clusters", **artifact}}
