"""
Does an answer make sense? A cluster may lie: proxies, aggregated APIs and conversion webhooks answer with what they like.

What is looked into without asking again (an object's metadata) is checked once, where it comes in. An answer that makes
no sense is as good as none: TransportError, after which requests are repeated and streams opened anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of

_TEXTS = ("namespace", "creationTimestamp", "deletionTimestamp")
_MAPS = ("labels", "annotations")
_LISTS: dict[str, type] = {"finalizers": str, "ownerReferences": dict, "managedFields": dict}


def checked(answer: Object, of: GroupKind, attempt: str, *, stored: bool = True) -> Object:
    """
    `answer`, if it is an object of that kind with metadata as the API conventions ("Metadata") have it.

    What is not `stored`, the outcome of a dry run, has no resourceVersion.
    """
    metadata = answer.get("metadata")
    identity = ("name", "uid", "resourceVersion") if stored else ("name", "uid")
    if kind_of(answer) != of or not isinstance(metadata, dict) or not _is_whole(metadata, identity):
        raise TransportError(f"{attempt}: the answer is not an object of kind {of}")
    return answer


def entries(answer: Object, api_version: str, of: GroupKind, attempt: str) -> list[Object]:
    """The objects of a list, whose entries do not say themselves what they are; those of metadata say something else."""
    with understood(attempt):
        found = [{**entry, "apiVersion": api_version, "kind": of.kind} for entry in answer.get("items") or []]
    return [checked(entry, of, attempt) for entry in found]


def _is_whole(metadata: Object, identity: Iterable[str]) -> bool:
    get = metadata.get
    return (
        all(isinstance(get(name), str) and get(name) for name in identity)
        and all(isinstance(get(name), str | None) for name in _TEXTS)
        and all(_is_map(get(name)) for name in _MAPS)
        and all(_is_list(get(name), kind) for name, kind in _LISTS.items())
    )


def _is_map(value: object) -> bool:
    return value is None or (isinstance(value, dict) and all(isinstance(text, str) for text in value.values()))


def _is_list(value: object, kind: type) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(entry, kind) for entry in value))


@contextlib.contextmanager
def understood(attempt: str) -> Iterator[None]:
    """Around the reading of an answer, and of nothing else: TransportError for one of another shape."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise TransportError(f"{attempt}: the answer makes no sense") from None
