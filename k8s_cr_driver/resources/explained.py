# SPDX-License-Identifier: Apache-2.0
"""A verdict with all that was asked for it: for people who try a rule, and never while an operation waits."""

from __future__ import annotations

from typing import NamedTuple

from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health.builtin import RULES
from k8s_cr_driver.resources.health.model import Health
from k8s_cr_driver.resources.health.rules import Rules


class Asked(NamedTuple):
    """A rule that was asked: where it is from, what it is for and its text, and what it said."""

    source: str
    rule: str
    said: str


class Verdict(NamedTuple):
    """The health of an object, what decided, and what was asked."""

    key: ObjectKey
    health: Health
    source: str
    field: str
    asked: list[Asked]


def verdict(obj: CustomResource, live: Object, of_kind: Rules | None = None) -> Verdict:
    """The verdict of a live object; `of_kind` are rules for its kind that decide after those of the object and its CRD."""
    sources = [*obj.rule_sources(live), *([of_kind] if of_kind else [])]
    by_kind = obj.health_by_kind(live)
    if of_kind and len(sources) == 1:
        obj.request_rules = {obj.key.group_kind: of_kind}
    health = obj.health(live)
    asked = [one for rules in sources for one in _asked(rules, live)]
    kind = _source_of_kind(obj)
    asked.append(Asked(kind, "the status", f"{by_kind.state.value} {by_kind.reason}: {by_kind.message}".rstrip(": ")))
    return Verdict(obj.key, health, health.source or kind, health.field, asked)


def _asked(rules: Rules, live: Object) -> list[Asked]:
    if rules.stored:
        return [Asked(rules.source, "ready: stored", "met")]
    if rules.script:
        judged = rules.script(live)
        said = f"{judged.state.value}: {judged.message}".rstrip(": ") if judged else "nothing"
        return [Asked(rules.source, "script", said)]
    named = {"suspended": rules.suspended, "in progress": rules.in_progress, "failed": rules.failed, "ready": rules.ready}
    found = []
    for purpose, rule in named.items():
        if rule is not None:
            outcome = rule.ask(live)
            seen = rules.seen(live, outcome)
            if outcome.field and not seen.startswith(outcome.field):
                seen = f"{outcome.field}: {seen}"
            found.append(
                Asked(rules.source, f"{purpose}: {rule.text.strip()}", f"{'met' if outcome.met else 'not met'}; {seen}")
            )
    return found


def _source_of_kind(obj: CustomResource) -> str:
    if (obj.key.group, obj.key.kind) in RULES:
        return "rule of the kind"
    return "rule for all kinds" if type(obj) is CustomResource else f"class {type(obj).__name__}"
