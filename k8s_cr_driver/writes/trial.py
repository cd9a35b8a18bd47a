# SPDX-License-Identifier: Apache-2.0
"""
The writes of a run as dry runs of the server: what it would refuse is known before anything is written.

Heal and scale ask before they delete, a change before its first write, and `k8s-cr diff` instead of writing.
"""

from __future__ import annotations

from dataclasses import replace

from k8s_cr_driver.errors import ApiError, DriverError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.dry_run import DryRun
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.create_or_apply import LeftToOthers, NotAdopted, write
from k8s_cr_driver.writes.write_errors import Immutable, NoDryRun

_REPEATED = (403, 404, 409, 410)
"""Refusals that the engine repeats until the deadline, as something of the set may be missing yet."""


def trial_of(context: WriteContext) -> WriteContext:
    """The same context for writes that store nothing: what the inventory notes of them is forgotten."""
    client = Client(DryRun.over(context.connection), context.resources)
    return replace(context, client=client, inventory=context.inventory.trial(), is_trial=True)


def refusal(
    trial: WriteContext, obj: CustomResource, resource: Resource, live: Object | None, *, finished: bool = False
) -> DriverError | None:
    """
    Why the server would refuse to write an object; None also if that is not known, or may pass until it is written.

    An object that would be replaced is none that is refused. An error after which the request is to be repeated is raised by
    nobody, but returned: `passes` is true of it.
    """
    try:
        write(trial, obj, resource, live, finished=finished)
    except (Immutable, LeftToOthers, NoDryRun, NotAdopted):
        return None
    except DriverError as error:
        return None if isinstance(error, ApiError) and error.status in _REPEATED else error
    return None
