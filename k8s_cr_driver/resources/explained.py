# SPDX-License-Identifier: Apache-2.0
"""A verdict with all that was asked for it: for people who try a rule, and never while an operation waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of
from k8s_cr_driver.objects.rule_files import PACKAGE_RULES
from k8s_cr_driver.resources import suggested
from k8s_cr_driver.resources.base import CustomResource, rule_sources
from k8s_cr_driver.resources.health.builtin import RULES
from k8s_cr_driver.resources.health.model import Health
from k8s_cr_driver.resources.health.rules import UNCOUNTED, Rules


class Asked(NamedTuple):
    """A rule that was asked: where it is from, what it is for and its text, what it said, and whether that is the verdict."""

    source: str
    rule: str
    said: str
    decides: bool = False


class Verdict(NamedTuple):
    """The health of an object, what decided, what was asked, and the annotation that would make it ready ("" if none)."""

    key: ObjectKey
    health: Health
    source: str
    field: str
    asked: list[Asked]
    line: str


def verdict(obj: CustomResource, live: Object, of_kind: Rules | None = None) -> Verdict:
    """The verdict of a live object.

    `of_kind` are rules for its kind that decide after those of the object and its CRD, in place of those of its package.
    """
    if of_kind:
        annotations = {name: value for name, value in annotations_of(obj.manifest).items() if name != PACKAGE_RULES}
        obj = obj.with_manifest({**obj.manifest, "metadata": {**obj.manifest["metadata"], "annotations": annotations}})
    sources = [*rule_sources(obj, live), *([of_kind] if of_kind else [])]
    by_kind = obj.health_by_kind(live)
    if of_kind and len(sources) == 1:
        obj.request_rules = {obj.key.group_kind: of_kind}
    health = obj.health(live)
    kind = _source_of_kind(obj)
    asked: list[Asked] = []
    for rules in sources:
        asked += _asked(rules, live, obj, may_decide=not asked and bool(health.source))
    said = f"{by_kind.state.value} {by_kind.reason}: {by_kind.message}".rstrip(": ")
    asked.append(Asked(kind, "the status", said, decides=not health.source))
    return Verdict(obj.key, health, health.source or kind, health.field, asked, suggested.line(obj, live))


def _asked(rules: Rules, live: Object, obj: CustomResource, *, may_decide: bool) -> Iterator[Asked]:
    old = rules.uncounted(live, obj.old_status)
    if old and not rules.stored:
        yield Asked(rules.source, "freshness", old.message, may_decide)
        may_decide = False
    if rules.script:
        judged = rules.judged(live)
        said = f"{judged.state.value}: {judged.message}".rstrip(": ") if judged else "nothing"
        uncounted = f"{UNCOUNTED}; " if old and judged else ""
        yield Asked(rules.source, "script", uncounted + said, may_decide and judged is not None)
        return
    for purpose, rule in rules.in_order():
        outcome = rule.ask(live)
        seen = rules.seen(live, outcome)
        if outcome.field and not seen.startswith(outcome.field):
            seen = f"{outcome.field}: {seen}"
        decides = may_decide and not old and (outcome.met or outcome.is_unknown or rule is rules.ready)
        may_decide = may_decide and not decides
        met = (UNCOUNTED if old else "met") if outcome.met else "not known" if outcome.is_unknown else "not met"
        yield Asked(rules.source, f"{purpose}: {rule.text.strip()}", f"{met}; {seen}", decides)
    if rules.stored:
        yield Asked(rules.source, "ready: stored", "met", may_decide)


def _source_of_kind(obj: CustomResource) -> str:
    if (obj.key.group, obj.key.kind) in RULES:
        return "rule of the kind"
    return "rule for all kinds" if type(obj) is CustomResource else f"class {type(obj).__name__}"
