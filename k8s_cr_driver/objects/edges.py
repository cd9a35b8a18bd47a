# SPDX-License-Identifier: Apache-2.0
"""Which keys wait for which: edges in layers of one strength each, which become a graph without a cycle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from k8s_cr_driver import logs
from k8s_cr_driver.objects.keys import ObjectKey

Edges = dict[ObjectKey, set[ObjectKey]]
"""For each key the keys that it has to wait for."""

MOST_SAID = 10
"""Edges that would close a cycle of which the log has a line."""

LOG = logs.logger(__name__)


def later(pairs: Iterable[tuple[ObjectKey, ObjectKey]]) -> Edges:
    """The edges of pairs (first, later)."""
    result: Edges = defaultdict(set)
    for first, second in pairs:
        result[second].add(first)
    return result


def turned(edges: Mapping[ObjectKey, Iterable[ObjectKey]]) -> Edges:
    """The edges in the other direction."""
    result: Edges = defaultdict(set)
    for key, needed in edges.items():
        for other in needed:
            result[other].add(key)
    return result


def untangled(keys: Iterable[ObjectKey], layers: Sequence[Edges]) -> Edges:
    """
    The union of `layers`, strongest first, without cycles: of each cycle, edges of the weakest layer in it are dropped.

    Edges of the same kind to the same object are dropped with it, because they close cycles as well. The strongest layer has no
    cycle.
    """
    keys = set(keys)
    several = [layers[0], *filter(None, layers[1:])]
    strongest, *weaker = [{key: (layer.get(key, set()) & keys) - {key} for key in keys} for layer in several]
    union = strongest
    for layer in weaker:
        if all(needed <= union[key] for key, needed in layer.items()):
            continue
        cycle_of = _strong_components({key: union[key] | layer[key] for key in keys})
        closing = {
            (key.group_kind, to) for key, needed in layer.items() for to in needed - union[key] if cycle_of[key] == cycle_of[to]
        }
        for kind, to in sorted(closing)[:MOST_SAID]:
            LOG.info("%s does not wait for %s: that would be a cycle", kind, to)
        union = {key: union[key] | {to for to in layer[key] if (key.group_kind, to) not in closing} for key in keys}
    return union


def one_way(layers: Sequence[Edges]) -> list[Edges]:
    """
    Without the edges between two objects that name each other.

    Two that are bound to each other are deleted together, as neither controller may let one go before it sees the other go: a
    VolumeSnapshotContent stays while its VolumeSnapshot does.
    """
    union: Edges = defaultdict(set)
    for layer in layers:
        for key, needed in layer.items():
            union[key] |= needed
    mutual = {key: {to for to in needed if key in union.get(to, ())} for key, needed in union.items()}
    pairs = sorted((key, to) for key, several in mutual.items() for to in several if key < to)
    for key, to in pairs[:MOST_SAID]:
        LOG.info("%s and %s name each other: neither waits for the other", key, to)
    return [defaultdict(set, {key: needed - mutual[key] for key, needed in layer.items()}) for layer in layers]


def _strong_components(edges: Edges) -> dict[ObjectKey, ObjectKey]:
    """For each key one that stands for all keys with which it is in cycles (Kosaraju's algorithm, in linear time)."""
    finished, seen = list[ObjectKey](), set[ObjectKey]()
    todo = [(key, False) for key in edges]
    while todo:
        key, is_left = todo.pop()
        if is_left:
            finished.append(key)
        elif key not in seen:
            seen.add(key)
            todo += [(key, True), *((to, False) for to in edges[key])]
    opposite, found = turned(edges), dict[ObjectKey, ObjectKey]()
    for root in reversed(finished):
        reached = [root]
        while reached:
            key = reached.pop()
            if key not in found:
                found[key] = root
                reached += opposite[key]
    return found
