# SPDX-License-Identifier: Apache-2.0
"""The error of a response with which a server refuses a request (Kubernetes API conventions, "Response Status Kind")."""

from __future__ import annotations

import datetime
import email.utils
import math
import re
from collections.abc import Mapping
from http.client import responses

from k8s_cr_driver.errors import ApiError, Said
from k8s_cr_driver.kube.bounded import Response
from k8s_cr_driver.kube.responses import NAME_LIMIT
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.decoding import decoded
from k8s_cr_driver.objects.fields import entries, mapping
from k8s_cr_driver.objects.keys import Object

LONGEST_RETRY_AFTER = 60.0
"""Seconds at most of a Retry-After; more is a mistake, or a date by another clock."""

CAUSES = 2_000
"""Of one error. Fields that others own are causes each; a rollback asks again for those that it has not seen."""

NO_STATUS = "the response is no Status of a Kubernetes API server"
"""What is said of an error without one."""

_UNANSWERED = re.compile(r'failed calling webhook \\{0,4}"([^"\\]{1,253})\\{0,4}"')
"""apiserver, pkg/admission/plugin/webhook/errors (ToStatusErr) and generic/webhook: the call itself has failed."""


def unanswered_webhook(text: str) -> str:
    """The name of the webhook that has not responded, as an error says it; "" for another error."""
    found = _UNANSWERED.search(text)
    return found[1] if found else ""


def refusal(attempt: str, response: Response, sent: SentValues) -> ApiError:
    """The error of a response, without the values that were sent, or are of the object."""
    status, said, later = response.status, _status(response.data), retry_after(response.headers)
    if said is None:
        return ApiError(attempt, status, responses.get(status, ""), NO_STATUS, retry_after=later)
    reason, message = str(said.get("reason") or responses.get(status, "")), str(said.get("message") or "")
    details = mapping(said, "details")
    subject = str(details.get("kind") or "")[:NAME_LIMIT], str(details.get("name") or "")[:NAME_LIMIT]
    reason, shown = sent.removed_from_reason(reason), sent.removed_from(message)
    meaning = Said.of(sent.removed_from(message, words=False))
    return ApiError(attempt, status, reason, shown, _causes(details, sent), later, subject, meaning)


def _causes(details: Object, sent: SentValues) -> list[tuple[str, str, str]]:
    """As many as the budgets of texts and of causes have room for, and how many more there are."""
    given, found = entries(details, "causes"), list[tuple[str, str, str]]()
    for cause in given[:CAUSES]:
        if sent.left <= 0:
            break
        why, where, what = (str(cause.get(name, "")) for name in ("reason", "field", "message"))
        sent.left -= len(why) + len(where)
        found.append((why[:NAME_LIMIT], _without_item(where, sent), sent.removed_from(what)))
    more = len(given) - len(found)
    return [*found, ("", "", f"and {more:,} more")] if more else found


def _without_item(field: str, sent: SentValues) -> str:
    """The path of a field. That of an entry of a list whose type is `set` ends with the entry itself: `.spec.keys[="a"]`."""
    path, item, value = field.partition("[=")
    return path + item + sent.removed_from(value)


def _status(body: bytes) -> Object | None:
    """The Status of an API server; None for anything else, of which nothing is repeated: it may be of any server."""
    try:
        said = decoded(body)
    except ValueError:
        return None
    return said if isinstance(said, dict) and said.get("kind") == "Status" and said.get("apiVersion") == "v1" else None


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Retry-After as seconds from now, of a number or a date (RFC 9110, 10.2.3), within bounds; None for neither."""
    text = (headers or {}).get("Retry-After") or ""
    try:
        seconds = float(text)
    except ValueError:
        seconds = _seconds_until(text)
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def _seconds_until(date: str) -> float:
    try:
        then = email.utils.parsedate_to_datetime(date)
        return (then - datetime.datetime.now(then.tzinfo)).total_seconds()
    except (ValueError, OverflowError):
        return math.nan
