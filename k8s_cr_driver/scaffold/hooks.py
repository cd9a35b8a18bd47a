# SPDX-License-Identifier: Apache-2.0
"""
Hooks of Helm become objects in an order of ours, as far as that keeps what they mean.

Helm runs each hook of a time after the other, by weight and name, and waits until a Job has ended (Helm's documents, "Chart
Hooks"). An operation of ours applies all objects, and an object waits for others by `config.kubernetes.io/depends-on`. So

* a Job of pre-install waits for the one before it, and what acts waits for the last one: workloads, custom resources, webhook
  configurations and API services. The others need not: nothing happens because of a ConfigMap;
* a Job of post-install waits for the one before it, and for webhook configurations. It does not wait until workloads are ready,
  as Helm does not unless it is asked to: many workloads become ready only by such a Job;
* what runs at an upgrade only is left out, since it would run at the instantiate;
* what runs at a test, a deletion or a rollback is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.fields import mapping, pod_spec
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of
from k8s_cr_driver.package.helm_hooks import HOOK, foreign
from k8s_cr_driver.scaffold.model import Choice

_ANNOTATIONS = (HOOK, "helm.sh/hook-weight", "helm.sh/hook-delete-policy", "helm.sh/hook-output-log-policy")
_UPGRADE = {"pre-upgrade", "post-upgrade"}
_JOBS = {GroupKind("batch", "Job"), GroupKind("", "Pod")}
_CRON_JOB = GroupKind("batch", "CronJob")
_WEBHOOKS = {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
_ACTING = {*_WEBHOOKS, "APIService"}


class _Hook(NamedTuple):
    weight: int
    name: str
    key: ObjectKey
    is_first: bool
    """Whether it runs before the installation, and not after it."""


def ordered(objects: Sequence[Object], namespace: str) -> tuple[list[Object], list[Choice]]:
    """The objects without those hooks that are left out, and what became of each hook.

    `namespace` is that of objects that name none.
    """
    choices = [choice for obj in objects if (choice := _left_out(obj))]
    kept = installed(objects)
    hooks = sorted(_hook(obj) for obj in kept if kind_of(obj) in _JOBS and _times(obj))
    before = [hook.key for hook in hooks if hook.is_first]
    after = [hook.key for hook in hooks if not hook.is_first]
    webhooks = [key_of(obj) for obj in kept if key_of(obj).kind in _WEBHOOKS and not _times(obj)]
    waits: dict[ObjectKey, list[ObjectKey]] = {}
    for earlier, later in zip([*before, *after], [*before, *after][1:], strict=False):
        waits[later] = [earlier]
    for key in after[:1]:
        waits[key] = [*waits.get(key, []), *webhooks]
    for obj in kept if before else ():
        if _acts(obj) and not _times(obj):
            waits[key_of(obj)] = [before[-1]]
    choices += [_kept(obj, waits.get(key_of(obj), []), is_first=key_of(obj) in before) for obj in kept if _times(obj)]
    return [_rewritten(obj, waits.get(key_of(obj), []), namespace) for obj in kept], choices


def installed(objects: Sequence[Object]) -> list[Object]:
    """The objects without those hooks that are left out."""
    return [obj for obj in objects if not _left_out(obj)]


def _times(obj: Object) -> set[str]:
    return {one.strip() for one in str(annotations_of(obj).get(HOOK, "")).split(",")} - {""}


def _hook(obj: Object) -> _Hook:
    text, key = str(annotations_of(obj).get("helm.sh/hook-weight", "")), key_of(obj)
    weight = int(text) if re.fullmatch("-?[0-9]{1,18}", text, re.ASCII) else 0
    return _Hook(weight, key.name, key, "pre-install" in _times(obj))


def _left_out(obj: Object) -> Choice | None:
    if times := foreign(obj):
        return Choice(str(key_of(obj)), "left out", f"Helm's hook {times}, which is not of an installation")
    if _times(obj) and _times(obj) <= _UPGRADE:
        why = (
            f"Helm's hook {', '.join(sorted(_times(obj)))}, which would run at the instantiate, too; add it to the package of "
        )
        return Choice(str(key_of(obj)), "left out", f"{why}a change that needs it")
    return None


def _kept(obj: Object, waits: Sequence[ObjectKey], *, is_first: bool) -> Choice:
    why = f"Helm's hook {', '.join(sorted(_times(obj)))}"
    if kind_of(obj) not in _JOBS:
        return Choice(str(key_of(obj)), "an object as any other", f"{why}, and no Job")
    place = "before all that acts" if is_first else "with the other objects"
    later = f", after {', '.join(map(str, waits))}" if waits else ""
    return Choice(str(key_of(obj)), f"runs {place}{later}", f"{why}; it runs again when a change of package changes it")


def _acts(obj: Object) -> bool:
    kind = kind_of(obj)
    return not is_builtin(kind) or pod_spec(obj) is not None or kind == _CRON_JOB or kind.kind in _ACTING


def _rewritten(obj: Object, waits: Sequence[ObjectKey], namespace: str) -> Object:
    """The object without the annotations of its hook, and with what it waits for; the same object if nothing changes."""
    if not waits and not _times(obj):
        return obj
    annotations = {name: text for name, text in annotations_of(obj).items() if name not in _ANNOTATIONS}
    references = [annotations[DEPENDS_ON]] if annotations.get(DEPENDS_ON) else []
    references += [_reference(key, namespace) for key in waits]
    metadata = {key: value for key, value in mapping(obj, "metadata").items() if key != "annotations"}
    added = {DEPENDS_ON: ",".join(references)} if references else {}
    return {**obj, "metadata": {**metadata, **({"annotations": {**annotations, **added}} if annotations or added else {})}}


def _reference(key: ObjectKey, namespace: str) -> str:
    is_of_cluster = key.group_kind not in _JOBS
    return "/".join([key.group, *([] if is_of_cluster else ["namespaces", key.namespace or namespace]), key.kind, key.name])
