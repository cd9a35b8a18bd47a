# SPDX-License-Identifier: Apache-2.0
"""
What an operator lets VNF packages and requests do on clusters, whatever the account of the VIM may do there.

Kinds are patterns of `Kind` or `Kind.group` with `*` for any part, as `kubectl` and the inventory name kinds. The rules are
applied to objects that have their namespaces, before the first of them is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from k8s_cr_driver.errors import Forbidden
from k8s_cr_driver.objects.keys import ObjectKey

OPTIONS = ("adopt-existing", "force-conflicts", "delete-guests")
"""Keys of additionalParams that change or delete what is not the instance's; the option of each is allow_KEY."""


@dataclass(frozen=True)
class Policy:
    """The fields are named as the options of [k8s_cr]; an empty list of what is allowed allows everything."""

    allowed_kinds: tuple[str, ...] = ()
    denied_kinds: tuple[str, ...] = ()
    allowed_namespaces: tuple[str, ...] = ()
    denied_namespaces: tuple[str, ...] = ()
    allow_cluster_scoped: bool = True
    allow_adopt_existing: bool = True
    allow_force_conflicts: bool = True
    allow_delete_guests: bool = True

    def check(self, keys: Iterable[ObjectKey], options: Iterable[str] = (), group: str = "k8s_cr") -> None:
        """
        Raise Forbidden, which names the object and the rule, for the first object or option that is not allowed.

        `options`: those of OPTIONS that the request sets. `group` is the group of options in tacker.conf that the policy comes
        from.
        """
        for key in keys:
            if rule := self.rule_against(key):
                raise Forbidden(f"{key}: the operator does not allow it: [{group}] {rule}; take it out of the package")
        for name in options:
            option = f"allow_{name.replace('-', '_')}"
            if not getattr(self, option):
                raise Forbidden(f"additionalParams {name}: the operator does not allow it: [{group}] {option}; leave it out")

    def rule_against(self, key: ObjectKey) -> str:
        """The option that forbids the object; "" if none does."""
        kind = str(key.group_kind)
        if matches(kind, self.denied_kinds):
            return "denied_kinds"
        if self.allowed_kinds and not matches(kind, self.allowed_kinds):
            return "allowed_kinds"
        if not key.namespace and not self.allow_cluster_scoped:
            return "allow_cluster_scoped"
        place = key.name if kind == "Namespace" else key.namespace
        if place and matches(place, self.denied_namespaces):
            return "denied_namespaces"
        if place and self.allowed_namespaces and not matches(place, self.allowed_namespaces):
            return "allowed_namespaces"
        return ""


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
