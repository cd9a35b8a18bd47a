# SPDX-License-Identifier: Apache-2.0
"""The driver's own keys of additionalParams: reads and checks them.

The values of instantiate are stored with the instance and hold for every later verb; a later request overrides them.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.rule_texts import LEAST, MOST, no_activity_seconds
from k8s_cr_driver.package.files import shown
from k8s_cr_driver.plan import DIGITS

FILES = "lcm-kubernetes-def-files"
OF_ONE_REQUEST = ("force-conflicts", "adopt-existing", "moved", "plan")
"""Never stored: what a user has allowed once, a later heal or change of the package must not do by itself."""
OF_ONE_VERB = ("recreate", "delete-guests", "delete-cloud-resources", "abandon")
"""Flags that only heal, or only terminate, looks at; they are no fields of `Options`."""
ENTRIES = 20_000
"""Keys of additionalParams, and files that a request names."""
_DIGEST = re.compile(rf"[0-9a-f]{{{DIGITS}}}")
MISSPELT = 0.93
"""How much like one of this driver's keys another key is (`difflib`, 0 to 1) that is taken for a misspelt one."""


@dataclass(frozen=True)
class Options:
    """The additionalParams of this driver; the key of each field is its name with hyphens."""

    files: tuple[str, ...] = field(default=(), metadata={"key": FILES})
    namespace: str = "default"
    """For namespaced objects that name none."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    helm_hooks: bool = False
    """Apply also the hooks of Helm that run at other times than an installation or upgrade: `package.helm_hooks`."""
    wait_timeout: float | None = None
    """Seconds; None: Tacker's [v2_vnfm] kubernetes_vim_rsc_wait_timeout."""
    no_activity_timeout: float | None = None
    """Seconds without any movement after which an operation ends early; None: it does not."""
    health_rules: tuple[Mapping[str, Any], ...] = ()
    """Readiness rules of kinds, as the entries of a file of rules."""
    force_conflicts: bool = False
    """Of one request, never stored."""
    adopt_existing: bool = False
    """Of one request, never stored."""
    moved: bool = False
    """Of one request, never stored: the instance's objects and inventory were moved to the cluster of the request."""

    plan: str = ""
    """Of one request, never stored: the digest of the plan that an instantiate or a change of package follows."""

    def updated(self, given: Mapping[str, Any]) -> Options:
        """With the values of a request; InvalidRequest names a key of a wrong type, or a misspelt one.

        Keys of other drivers are ignored.
        """
        if len(given) > ENTRIES:
            raise InvalidRequest(f"additionalParams has more than {ENTRIES:,} keys, the limit")
        _check_spelling(given)
        changes: dict[str, Any] = {}
        for one in fields(self):
            key = _key(one.name)
            if given.get(key) is not None:
                changes[one.name] = _CHECKS[one.name](key, given[key])
        return replace(self, **changes)

    def as_params(self) -> dict[str, Any]:
        """Those that are stored with the instance, as additionalParams in JSON's types."""
        values = {_key(one.name): getattr(self, one.name) for one in fields(self)}
        for key in OF_ONE_REQUEST:
            del values[key]
        values[FILES] = list(self.files)
        values["parameters"] = dict(self.parameters)
        values["health-rules"] = [dict(one) for one in self.health_rules]
        for key in ("health-rules", "no-activity-timeout"):
            if not values[key]:
                del values[key]
        return values


def _key(name: str) -> str:
    return FILES if name == "files" else name.replace("_", "-")


def _check_spelling(given: Iterable[str]) -> None:
    known = [*(_key(one.name) for one in fields(Options)), *OF_ONE_VERB]
    for key in given:
        meant = difflib.get_close_matches(key.lower().replace("_", "-"), known, n=1, cutoff=MISSPELT)
        if meant and key not in known:
            raise InvalidRequest(f"additionalParams {shown(key)}: there is no such key; write {meant[0]}")


def _files(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(entry, str) and entry for entry in value):
        raise InvalidRequest(f"additionalParams {key}: give a list of paths in the package, such as Files/kubernetes/a.yaml")
    if len(value) > ENTRIES:
        raise InvalidRequest(f"additionalParams {key}: has more than {ENTRIES:,} entries, the limit; put several into one file")
    if twice := [entry for entry, count in Counter(value).items() if count > 1]:
        raise InvalidRequest(f"additionalParams {key}: give {shown(twice[0])} once, not twice")
    return tuple(value)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        given = "an empty text" if value == "" else type(value).__name__
        raise InvalidRequest(f"additionalParams {key}: give a name, not {given}")
    return value


def _mapping(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"additionalParams {key}: give an object of names and values, not {type(value).__name__}")
    return value


def _rules(key: str, value: Any) -> tuple[Mapping[str, Any], ...]:
    try:
        rule_files.read({rule_files.LIST: value})
    except ExpressionError as error:
        raise InvalidRequest(f"additionalParams {key}: {str(error).removeprefix(rule_files.LIST).lstrip(': ')}") from None
    return tuple(value)


def _seconds(key: str, value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = 0.0
    if isinstance(value, bool) or not 0 < seconds <= 7 * 86400:
        raise InvalidRequest(f"additionalParams {key}: give seconds, more than 0 and at most a week")
    return seconds


def _no_activity(key: str, value: Any) -> float:
    seconds = no_activity_seconds(value)
    if seconds is None:
        raise InvalidRequest(f"additionalParams {key}: give seconds, from {LEAST} to {MOST} (a week)")
    return seconds


def flag(key: str, value: Any) -> bool:
    """A flag of additionalParams; InvalidRequest unless it is true or false, maybe in quotes."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise InvalidRequest(f"additionalParams {key}: give true or false")
    return value


def is_set(params: Mapping[str, Any], key: str) -> bool:
    """A flag that may be absent, or null."""
    value = params.get(key)
    return value is not None and flag(key, value)


def _digest(key: str, value: Any) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise InvalidRequest(f"additionalParams {key}: give the {DIGITS} digits that k8s-cr plan prints")
    return value


_CHECKS = {
    "files": _files,
    "namespace": _text,
    "parameters": _mapping,
    "helm_hooks": flag,
    "wait_timeout": _seconds,
    "no_activity_timeout": _no_activity,
    "health_rules": _rules,
    "force_conflicts": flag,
    "adopt_existing": flag,
    "moved": flag,
    "plan": _digest,
}
