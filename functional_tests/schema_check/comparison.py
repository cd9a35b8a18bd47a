# SPDX-License-Identifier: Apache-2.0
"""The check of custom resources beside the API server's own: false errors, and misses by their class."""

from __future__ import annotations

import copy
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import key_of
from k8s_cr_driver.package import schema

from . import variants
from .oracle import Object, Oracle
from .published import Kind

MADE, CHANGED = 5, 4
"""Objects that are made for a definition, and of each object those with a change."""
NOT_LISTED = "not listed"
MISSES = {
    "formats": re.compile(
        "must be of type (byte|cidr|date|date-time|datetime|duration|email|hostname|ipv4|ipv6|mac|uri|uuid)"
    ),
    "numbers beyond their format": re.compile("Checked value must be|(Maximum|Minimum) boundary|MultipleOf value must be"),
    "an integer as a multiple of a fraction": re.compile(
        "factor in multipleOf must be positive|should be a multiple of"
    ),
    "identity and metadata": re.compile(r"Required value: must not be empty|\bmetadata\b"),
    "unknown fields below additionalProperties: true": re.compile(r"^spec\.value(\.\w+)+$"),  # of generated schemas
}
"""What the API server refuses and the check leaves to it."""
_CONSEQUENCE = re.compile("must validate (at least )?one")
"""Of a fault within: no alternative of anyOf or oneOf fits."""


@dataclass
class Figures:
    """
    Of one module: its definitions, its objects, those derived from both, false errors, and misses by class.

    `created_only` are refused rightly, although a create accepts them: an apply, as a heal or a change of package sends it,
    does not.
    """

    definitions: int = 0
    published: int = 0
    derived: int = 0
    created_only: int = 0
    false: list[str] = field(default_factory=list)
    misses: Counter[str] = field(default_factory=Counter)


def refused(*objects: Object) -> str:
    """The error of the check; "" without one."""
    try:
        schema.check(objects)
    except InvalidPackage as error:
        return str(error)
    return ""


def missed(faults: Sequence[str]) -> str:
    """The class of the faults of an object that the check accepts."""
    own = [fault for fault in faults if not _CONSEQUENCE.search(fault)]
    classes = [next((name for name, faulty in MISSES.items() if faulty.search(fault)), NOT_LISTED) for fault in own]
    return NOT_LISTED if not classes or NOT_LISTED in classes else classes[0]


def compare(oracle: Oracle, kinds: Iterable[Kind]) -> Mapping[str, Figures]:
    """The figures by module. Definitions that the API server refuses are left out."""
    found: dict[str, Figures] = defaultdict(Figures)
    for kind in kinds:
        if oracle.refusal(kind.definition):
            continue
        figures = found[kind.module]
        figures.definitions += 1
        figures.false += filter(None, [refused(kind.definition)])
        derived = list(_derived(kind))
        for module, _ in kind.objects:
            found[module].published += 1
        for module, _ in derived:
            found[module].derived += 1
        _judge(oracle, kind.definition, [*kind.objects, *derived], found)
    return found


def _derived(kind: Kind) -> Iterator[tuple[str, Object]]:
    invented = [(kind.module, obj) for obj in variants.made(kind.definition, MADE)]
    yield from invented
    for module, obj in [*invented, *kind.objects]:
        yield from ((module, one) for one in variants.changed(obj, CHANGED))


def _judge(
    oracle: Oracle, definition: Object, objects: Sequence[tuple[str, Object]], found: Mapping[str, Figures]
) -> None:
    sent = copy.deepcopy([obj for _, obj in objects])
    schema.remove_nulls(sent, lambda kind: definition)  # as before each operation
    for (module, obj), verdict in zip(objects, oracle.verdicts(definition, sent), strict=True):
        ours = refused(definition, obj)
        if ours and not verdict.faults and not verdict.apply:
            found[module].false.append(f"{key_of(obj)}: {ours}")
        elif ours and not verdict.faults:
            found[module].created_only += 1
        elif verdict.faults and not ours:
            found[module].misses[missed(verdict.faults)] += 1
