# SPDX-License-Identifier: Apache-2.0
"""The kinds of trouble that a life may have, and those for which the engine has no remedy yet."""

from __future__ import annotations

_OF_THE_NETWORK = frozenset({"latency", "lost answers", "server errors", "silent streams", "streams not found"})
_OF_WORKERS = frozenset({"crashes", "two workers", "early rollbacks"})
_OF_USERS = frozenset({"edits", "lost labels", "finalizers", "deletions", "namespaces deleted", "recreated"})
_OF_NEIGHBOURS = frozenset({"neighbours", "guests", "lookalikes"})
_OF_PACKAGES = frozenset({"dropped containers", "job ttl"})

ALL = _OF_THE_NETWORK | _OF_WORKERS | _OF_USERS | _OF_NEIGHBOURS | _OF_PACKAGES

UNMENDED = frozenset(
    {
        "two workers",  # one begins while another still runs, and the first hears of that late
        "early rollbacks",  # and that even before the first has claimed the instance
        "dropped containers",  # a CRD that a change released goes, and the next change still needs it
        "job ttl",  # a finished Job goes before its end is in the inventory
        "streams not found",  # a server responds to a watch with 404 though it serves the kind
        "recreated",  # users create an object again with its labels: a change reports the conflict
    }
)

MENDED = ALL - UNMENDED
