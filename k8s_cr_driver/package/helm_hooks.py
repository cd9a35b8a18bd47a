# SPDX-License-Identifier: Apache-2.0
"""
Hooks of Helm among the manifests of a package, which `helm template` prints like everything else.

Helm runs each at its time and waits for it: a test Pod on demand, a Job of pre-delete before the release is deleted. Applied
with the other objects, the one fails before its Service has endpoints, and the other deletes what the instance has just
created. So only what belongs to an installation is applied, in the order of all objects, unless a request asks for the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.objects.keys import Object, annotations_of, key_of

HOOK = "helm.sh/hook"
PARAMETER = "helm-hooks"
"""The key of additionalParams with which all hooks are applied."""
INSTALLED = frozenset({"pre-install", "post-install", "pre-upgrade", "post-upgrade", "crd-install"})


def foreign(obj: Object) -> str:
    """The hooks of an object that is none of an installation or upgrade, as its annotation has them; else ""."""
    hooks = {one.strip() for one in annotations_of(obj).get(HOOK, "").split(",")} - {""}
    return ", ".join(sorted(hooks)) if hooks and hooks.isdisjoint(INSTALLED) else ""


def applied(objects: Iterable[Object]) -> list[Object]:
    """The objects without the hooks that run at other times than an installation or upgrade."""
    return [obj for obj in objects if not foreign(obj)]


def warnings(objects: Iterable[Object], *, are_applied: bool) -> list[str]:
    """A sentence for each of these hooks."""
    what = "is applied as any other object" if are_applied else f"is not applied, as {PARAMETER} is not set"
    return [
        f"{key_of(obj)}: {what}: Helm runs it as hook {hooks} ({HOOK}), not with an installation. Take it out of the package"
        for obj in objects
        if (hooks := foreign(obj))
    ]
