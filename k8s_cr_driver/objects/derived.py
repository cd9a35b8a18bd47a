# SPDX-License-Identifier: Apache-2.0
"""
Fields that the API server has derived from others, and keeps when these are gone.

Nobody has applied them, so that no apply removes them: the account of Pods under its deprecated name
(kubernetes/kubernetes#108208), the parameters of a strategy that is no longer used (kubernetes/kubernetes#24198), the types of
a NetworkPolicy. A manager that owns them has them removed by its next apply, and the API server derives them again.
"""

from __future__ import annotations

from collections.abc import Iterator

from k8s_cr_driver.objects.fields import field, sequence, text
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of

Path = tuple[str, ...]

_TEMPLATE: Path = ("spec", "template", "spec")
_TEMPLATES = {
    **{GroupKind("apps", kind): _TEMPLATE for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")},
    GroupKind("", "ReplicationController"): _TEMPLATE,
    GroupKind("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
}
"""Where the pod spec is, of the kinds whose template may change."""
_ACCOUNTS = ("serviceAccountName", "serviceAccount")
_STRATEGIES = {
    GroupKind("apps", "Deployment"): (("spec", "strategy"), "Recreate"),
    GroupKind("apps", "StatefulSet"): (("spec", "updateStrategy"), "OnDelete"),
}
"""Where the strategy is, and the type of it that has no `rollingUpdate` (pkg/apis/apps/validation)."""
_POLICY = GroupKind("networking.k8s.io", "NetworkPolicy")


def stale_fields(live: Object, manifest: Object) -> Iterator[Path]:
    """The fields of `live` that the API server would not derive from `manifest`, which has none of them."""
    kind = kind_of(live)
    base = _TEMPLATES.get(kind)
    if base and not text(manifest, *base, "serviceAccountName"):  # which the API server prefers to the deprecated name
        wanted = text(manifest, *base, "serviceAccount")
        derived = _ACCOUNTS[:1] if wanted else _ACCOUNTS
        yield from ((*base, name) for name in derived if text(live, *base, name) not in ("", wanted))
    if kind in _STRATEGIES:
        strategy, without = _STRATEGIES[kind]
        parameters = (*strategy, "rollingUpdate")
        if field(manifest, *strategy, "type") == without and field(manifest, *parameters) is None and field(live, *parameters):
            yield parameters
    if kind == _POLICY and not sequence(manifest, "spec", "policyTypes"):
        types = ["Ingress", *(["Egress"] if sequence(manifest, "spec", "egress") else [])]
        if sequence(live, "spec", "policyTypes") not in ([], types):
            yield ("spec", "policyTypes")


def leaves(value: object, path: Path) -> list[Path]:
    """The fields at `path` that have values: who has applied one of a strategy's parameters does not own the others."""
    inner = [leaf for name, one in value.items() for leaf in leaves(one, (*path, name))] if isinstance(value, dict) else []
    return inner or [path]
