# SPDX-License-Identifier: Apache-2.0
"""The kinds of trouble that a life may have."""

from __future__ import annotations

_OF_THE_NETWORK = frozenset({"latency", "lost answers", "server errors", "silent streams", "streams not found"})
_OF_ADMISSION = frozenset({"quota", "webhooks"})
_OF_WORKERS = frozenset({"crashes", "two workers", "early rollbacks"})
_OF_USERS = frozenset({"edits", "lost labels", "finalizers", "deletions", "namespaces deleted", "recreated"})
_OF_NEIGHBOURS = frozenset({"neighbours", "guests", "lookalikes"})
_OF_CONTROLLERS = frozenset({"owners", "late collector"})
_OF_PACKAGES = frozenset({"kept", "dropped containers", "job ttl", "immutable fields"})

UNSEEN = _OF_THE_NETWORK | _OF_ADMISSION | _OF_WORKERS
"""What leaves no trace once an operation has come to its end."""
ALL = UNSEEN | _OF_USERS | _OF_NEIGHBOURS | _OF_CONTROLLERS | _OF_PACKAGES
