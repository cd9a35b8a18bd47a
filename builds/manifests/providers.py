# SPDX-License-Identifier: Apache-2.0
"""The manifests of a provider of Cluster API, rendered as its release process does it.

That sets the released image and the pull policy IfNotPresent. The variables are filled in that clusterctl fills in;
nothing else is changed.
"""

import re
from pathlib import Path

from .. import controllers
from . import tools

VARIABLES = {"CLUSTER_TOPOLOGY": "true"}
_VARIABLE = re.compile(r"\$\{(\w+):=([^}]*)\}")


def render(file: Path, name: str, config: str) -> None:
    """Write what installs a controller: the kustomization `config` of its module."""
    file.write_text(_fill(_kustomized(controllers.CONTROLLERS[name], config)))


def _kustomized(controller: controllers.Controller, config: str) -> str:
    container = {"name": "manager", "image": controller.image(), "imagePullPolicy": "IfNotPresent"}
    return tools.kustomized(controller.source() / config, spec={"template": {"spec": {"containers": [container]}}})


def _fill(manifests: str) -> str:
    return _VARIABLE.sub(lambda found: VARIABLES.get(found[1], found[2]), manifests)
