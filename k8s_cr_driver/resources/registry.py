# SPDX-License-Identifier: Apache-2.0
"""Which class knows a kind: (group, kind) -> subclass of CustomResource.

Other projects add classes by an entry point of group `k8s_cr_driver.resources` that names a class or a module of them;
theirs win over ours. A class of kind "*" is for the kinds of its group, and of groups that end in it, that have no class of
their own. One that cannot be imported is logged and left out: an operator's other kinds go on working.
"""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
from collections.abc import Iterator
from types import ModuleType

from k8s_cr_driver import logs
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of
from k8s_cr_driver.resources import builtin
from k8s_cr_driver.resources.base import ANY, CustomResource
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.rules import without_rules

LOG = logs.logger(__name__)

ENTRY_POINTS = "k8s_cr_driver.resources"


def resource_for(manifest: Object, crd: Object | None = None) -> CustomResource:
    """The object of `manifest`, in the class of its kind."""
    return class_of(kind_of(manifest))(manifest, crd)


def health_of_made(live: Object) -> Health:
    """The health of what a controller has made: it may have copied the rules of the object that it made it of."""
    live = without_rules(live)
    return resource_for(live).health(live)


def class_of(kind: GroupKind) -> type[CustomResource]:
    """The class of a kind, else that of its group, else that of the longest group that its group ends in."""
    if kind in classes():
        return classes()[kind]
    labels = kind.group.split(".")
    groups = (".".join(labels[start:]) for start in range(len(labels)))
    return next((classes()[known] for group in groups if (known := GroupKind(group, ANY)) in classes()), CustomResource)


@functools.cache
def classes() -> dict[GroupKind, type[CustomResource]]:
    """All classes that are registered."""
    found = {GroupKind(cls.group, cls.kind): cls for cls in _in(builtin)}
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry.load()
        except Exception:
            LOG.exception("Entry point %s of %s cannot be loaded; its kinds are treated as any other", entry.name, ENTRY_POINTS)
            continue
        found.update({GroupKind(cls.group, cls.kind): cls for cls in _in(loaded)})
    return found


def _in(loaded: object) -> Iterator[type[CustomResource]]:
    candidates = vars(loaded).values() if isinstance(loaded, ModuleType) else [loaded]
    for cls in candidates:
        if inspect.isclass(cls) and issubclass(cls, CustomResource) and cls.kind:
            yield cls
