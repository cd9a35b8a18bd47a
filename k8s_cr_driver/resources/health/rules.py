# SPDX-License-Identifier: Apache-2.0
"""Readiness in users' own words: rules of annotations, requests, packages and operators, which decide before any other.

The first source that has rules for an object decides alone; what its rules do not say, the rules of the kind say. A status that
is older than our change of the spec ends no wait, whatever a rule says of it, unless `ignore-generation` is true.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.fields import mapping, text
from k8s_cr_driver.objects.keys import GroupKind, Object, annotations_of, kind_of
from k8s_cr_driver.objects.rule_files import EXPRESSIONS, PACKAGE_RULES, KindRules
from k8s_cr_driver.objects.rule_texts import (
    FAILED_WHEN,
    IGNORE_GENERATION,
    READY_WHEN,
    STORED,
    SUSPENDED_WHEN,
    Outcome,
    Rule,
    cel,
    rule,
)
from k8s_cr_driver.resources.health.freshness import behind
from k8s_cr_driver.resources.health.model import NO_STATUS, READINESS_UNKNOWN, Health, State, failed, ready, suspended, waiting

_SECRET = GroupKind("", "Secret")
_NOT_SHOWN = "what it has is not shown"
_LONGEST = 128 * 1024
"""Characters of the rules of a package for a kind: four expressions, of which JSON may write a character with twelve."""
UNCOUNTED = "met, but not counted: the status is older than the change"
_SAY: Mapping[str, Callable[[str], Health]] = {
    "suspended": suspended,
    "in progress": waiting,
    "failed": failed,
    "ready": ready,
}
_ANNOTATIONS = (READY_WHEN, FAILED_WHEN, SUSPENDED_WHEN)
_OF_THE_OBJECT = {*_ANNOTATIONS, IGNORE_GENERATION, PACKAGE_RULES}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that one source has for an object. `source` is for people: "annotation of the object"."""

    source: str
    ready: Rule | None = None
    in_progress: Rule | None = None
    failed: Rule | None = None
    suspended: Rule | None = None
    script: Callable[[Mapping[str, Any]], Health | None] | None = None
    """Judges in place of the other rules; None if it says nothing."""
    stored: bool = False
    ignore_generation: bool = False

    def health(self, live: dict[str, Any], old_status: Any, otherwise: Callable[[], Health]) -> Health:
        """The health of an object by these rules; `otherwise` judges it by those of its kind."""
        old = self.uncounted(live, old_status)
        if old and not self.stored:
            return replace(old, message=self._beside_old(live, old.message), source=self.source)
        if self.script:
            judged = self.judged(live)
            return replace(judged, source=self.source) if judged else otherwise()
        for purpose, asked in self.in_order() if not old else ():
            found = asked.ask(live)
            if found.is_unknown:
                unknown = waiting("RuleNotKnown", f"{asked.text}: {found.seen}", found.field, trouble=True)
                return replace(unknown, source=self.source)
            if found.met:
                said = self._said(live, found, otherwise()) if asked is self.failed else self.seen(live, found)
                return replace(_SAY[purpose]("ByRule"), message=f"{asked.text}: {said}", source=self.source, field=found.field)
        if self.stored:
            return replace(ready("Stored", "no more is asked for than that it is stored"), source=self.source)
        if self.ready is None:
            return otherwise()
        found, by_kind = self.ready.ask(live), otherwise()
        message = f"{self.ready.text} is not met: {self._said(live, found, by_kind)}"
        unmet = waiting("RuleNotMet", message, trouble=by_kind.trouble)
        return replace(unmet, source=self.source, field=found.field)

    def in_order(self) -> Iterator[tuple[str, Rule]]:
        """The rules in the order in which they are asked, each with what it says if it is met."""
        rules = (self.suspended, self.in_progress, self.failed, self.ready)
        return ((purpose, one) for purpose, one in zip(_SAY, rules, strict=True) if one)

    def judged(self, live: Mapping[str, Any]) -> Health | None:
        """What the script says, None if that is nothing; never what it has read in a Secret."""
        found = self.script(live) if self.script else None
        return replace(found, message=_NOT_SHOWN) if found and kind_of(live) == _SECRET else found

    def uncounted(self, live: dict[str, Any], old_status: Any) -> Health | None:
        """Why nothing that these rules say counts, as a health: the status is older than the spec; None if they count."""
        return behind(live, old_status) if not self.ignore_generation and live.get("status") else None

    def _beside_old(self, live: Mapping[str, Any], message: str) -> str:
        met = next((asked.text for _, asked in self.in_order() if asked.ask(live).met), "")
        return f"{met}: {UNCOUNTED}: {message}" if met else message

    def seen(self, live: Mapping[str, Any], found: Outcome) -> str:
        """What the object has there; never of a Secret, since a message reaches logs and users."""
        return _NOT_SHOWN if kind_of(live) == _SECRET else found.seen

    def _said(self, live: Mapping[str, Any], found: Outcome, by_kind: Health) -> str:
        """What the object has there, and what its controller says of it beside that."""
        seen = self.seen(live, found)
        return "; ".join([seen, *_beside(seen, found.field, _cause(live, by_kind))])


def _cause(live: Mapping[str, Any], by_kind: Health) -> str:
    """What the controller says of an object that is not ready, as far as the rules of its kind, or nobody, can tell."""
    if by_kind.reason in (NO_STATUS, READINESS_UNKNOWN):
        return text(live, "status", "message")
    return "" if by_kind.state is State.READY else by_kind.message


def _beside(seen: str, field: str, cause: str) -> Iterator[str]:
    """The clauses of a cause, without what stands in `seen`: "health is ERR: 2 lost" says no more than "2 lost" then."""
    leaf = field.rpartition(".")[2].rpartition("[")[2].rstrip("]")
    seen = re.sub(r"^it is\b", lambda _: f"{leaf} is", seen)
    for clause in filter(None, cause.split("; ")):
        head, _, more = clause.partition(": ")
        state, _, reason = head.partition(" (")
        if not re.search(rf"(?<!\w){re.escape(state)}(?!\w)", seen):
            yield clause
        elif left := ": ".join(one for one in (reason.rstrip(")"), more) if one and one not in seen):
            yield left


def of_texts(rules: KindRules, source: str) -> Rules:
    """The rules of a kind as a file has them, which were checked when it was read."""
    asked = {name: cel(rules[name]) for name in EXPRESSIONS if name in rules}
    return Rules(
        source,
        asked.get("current"),
        asked.get("inProgress"),
        asked.get("failed"),
        asked.get("suspended"),
        ignore_generation=bool(rules.get("ignoreGeneration")),
    )


def of_package(manifest: Mapping[str, Any]) -> Rules | None:
    """The rules of the package that the driver writes to the object; None if there are none, or none can be read."""
    written = mapping(manifest, "metadata", "annotations").get(PACKAGE_RULES)
    return _of_json(written) if isinstance(written, str) and len(written) <= _LONGEST else None


@functools.lru_cache(maxsize=512)
def _of_json(written: str) -> Rules | None:
    try:
        rules = json.loads(written)
        return of_texts(rules, "rules of the package") if isinstance(rules, dict) else None
    except (ValueError, TypeError, RecursionError):  # ExpressionError is a ValueError
        return None


def without_rules(live: Object) -> Object:
    """The object without the annotations of rules."""
    annotations = annotations_of(live)
    if _OF_THE_OBJECT.isdisjoint(annotations):
        return live
    others = {name: value for name, value in annotations.items() if name not in _OF_THE_OBJECT}
    return {**live, "metadata": {**live["metadata"], "annotations": others}}


def of_annotations(owner: Mapping[str, Any] | None, source: str) -> Rules | None:
    """The rules in the annotations of an object or a CRD; None if there are none, or one cannot be read."""
    annotations = mapping(owner, "metadata", "annotations")
    if not annotations or not any(name in annotations for name in _ANNOTATIONS):
        return None
    written = [annotations.get(name) for name in _ANNOTATIONS]
    ignores, stored = annotations.get(IGNORE_GENERATION) == "true", written[0] == STORED
    asked = [None if stored else written[0], *written[1:]]
    try:
        of_ready, of_failed, of_suspended = (rule(one) if isinstance(one, str) else None for one in asked)
    except ExpressionError:
        return Rules(source, stored=True) if stored else None
    return Rules(source, of_ready, None, of_failed, of_suspended, stored=stored, ignore_generation=ignores)
