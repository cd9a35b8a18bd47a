# SPDX-License-Identifier: Apache-2.0
"""The management driver that sends the kubeconfigs of an instance's workload clusters to their user.

Keeps what was delivered, and the settings of requests, in the metadata of the VnfInstance, which survives a terminate. A
failed operation does not store the instance: the record of its deliveries goes through user_script_err_handling_data.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from k8s_cr_driver.credentials import operations
from k8s_cr_driver.credentials import settings as sender_settings
from k8s_cr_driver.credentials.management import ManagementCluster
from k8s_cr_driver.credentials.sender import NotListed, Record, Sender, sender
from k8s_cr_driver.credentials.settings import PARAMETER, Settings
from k8s_cr_driver.errors import DriverError, InvalidPackage, InvalidRequest
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.lcm import hook, receivers
from k8s_cr_driver.objects.fields import mapping, text, texts, type_name
from k8s_cr_driver.vnf.additional_params import is_set

KEY = "credential_sender"
"""Key in the metadata of the VnfInstance and in user_script_err_handling_data."""
_GRACE = 1.0
"""Seconds by which the alarm is later than the deadline, at which an attempt ends with a better message."""


def run(call: hook.Call) -> None:
    """The management driver's entry point. Raises DriverError."""
    stored = call.kept(KEY)
    kept = {name: value for name, value in mapping(stored, "settings").items() if name != sender_settings.ALLOW_INSECURE}
    asked = hook.unless_refused(call, stored, lambda: _asked(call, kept))
    if asked is None:
        return
    (given, settings), record = asked, Record.read(mapping(stored, "clusters"))
    # A terminate is two calls, and Tacker stores the instance after the second.
    warning = text(stored, "warning") if call.operation == "terminate_end" else ""
    project = call.project(KEY)
    namespaces = receivers.namespaces(call.instance) or texts(call.error_data, KEY, "namespaces")
    try:
        with hook.deadline(settings.deadline + _GRACE):
            _send(call, settings, record, project, namespaces)
    except (DriverError, hook.DeadlinePassed) as error:
        if settings.on_failure == "fail" and not isinstance(error, NotListed):
            raise
        warning = hook.line(error)
    finally:
        call.keep(KEY, _content(call, given, record, warning), project=project, namespaces=namespaces)


def _asked(call: hook.Call, kept: Mapping[str, Any]) -> tuple[Mapping[str, Any], Settings]:
    """What requests give, and the settings with it."""
    request = _of_request(call)
    given = {**sender_settings.remaining(kept, request), **request}
    return given, _settings(call, given, kept)


def _send(call: hook.Call, settings: Settings, record: Record, project: str, namespaces: Sequence[str]) -> None:
    end = time.monotonic() + settings.deadline
    settings, judge = receivers.resolved(settings, call.options, call.instance, project, namespaces)
    with (
        _management(call, end) as management,
        sender(call.instance["id"], project, settings, record, management, end, judge) as one,
    ):
        _act(call, one)


def _act(call: hook.Call, one: Sender) -> None:
    match call.operation:
        case operations.GOING:
            one.send_going(call.namespaces())
        case operation if operation in operations.ENDS:
            one.send_gone()
        case operation if operation in operations.CHANGES:
            one.send_changes(call.namespaces())
        case _:
            raise InvalidPackage(f"{call.operation}: the credential sender has nothing to do there; remove it from the VNFD")


def _of_request(call: hook.Call) -> Mapping[str, Any]:
    given = call.additional_params.get(PARAMETER, {})
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"additionalParams.{PARAMETER}: must be a mapping of settings, not {type_name(given)}")
    return given


def _settings(call: hook.Call, given: Mapping[str, Any], kept: Mapping[str, Any]) -> Settings:
    path = call.script.with_suffix(".yaml")
    try:
        written = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidPackage(f"Scripts/{path.name}: the settings cannot be read; the file must be beside the script") from None
    try:
        return sender_settings.load(written, f"Scripts/{path.name}", given)
    except InvalidRequest as error:
        if not kept:
            raise
        raise InvalidRequest(f"{error} (an earlier request has given {', '.join(sorted(kept))}, which still holds)") from None


@contextlib.contextmanager
def _management(call: hook.Call, end: float) -> Iterator[ManagementCluster | None]:
    """None where it need not be reached: after a terminate, and in one with `abandon`."""
    endpoint = None if is_set(call.additional_params, "abandon") else call.endpoint()
    if endpoint is None:
        yield None
        return
    with Connection(endpoint, deadline=end) as connection:
        yield ManagementCluster(connection)


def _content(call: hook.Call, given: Mapping[str, Any], record: Record, warning: str) -> Mapping[str, Any]:
    """`resend` is of one request. No setting of a request is secret. Settings last as long as the instance has clusters."""
    is_over = call.operation in operations.ENDS and not record.deliveries
    lasting = {name: value for name, value in given.items() if name != "resend" and not is_over}
    kept = {"settings": lasting, "clusters": record.as_dict(), "warning": warning}
    return {name: value for name, value in kept.items() if value}
