"""Health rules of the kinds that are built into Kubernetes, by (group, kind)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from k8s_cr_driver.resources.health.model import Health

Rule = Callable[[dict[str, Any]], Health]

RULES: Mapping[tuple[str, str], Rule] = {}
