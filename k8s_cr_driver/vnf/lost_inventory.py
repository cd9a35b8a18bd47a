# SPDX-License-Identifier: Apache-2.0
"""
An inventory that is not where it should be: the endpoint names another cluster, or somebody has deleted it.

What is known of it otherwise goes into `Inventory.remembered`, from which the next claim creates it again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import Refused
from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.objects.keys import Object, key_of, kind_of
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.members import has_objects


def check_cluster(operation: Operation, context: WriteContext, before: str, *, moved: bool) -> None:
    """Refused if this cluster, at another endpoint than `before`, does not have the inventory of the instance.

    One that was moved here has another uid, as one has that anybody may have written: the request must accept it.
    """
    inventory = context.inventory
    found, uid = operation.persist(inventory.read), inventory.remembered.uid
    if found is None or (uid and found.uid != uid and not moved):
        remedy = "Change the endpoint back, or give a new terminate additionalParams abandon: true."
        if found:
            flag = "use additionalParams moved: true in a new request"
            remedy = f"If its objects and its inventory were moved there, {flag}. Else: {remedy}"
        raise Refused(
            f"vimConnectionInfo: VNF instance {operation.instance} is on the cluster at {before}. The endpoint now "
            f"is {context.connection.endpoint.url}, another cluster, which does not have the inventory of the "
            f"instance. {remedy}"
        )
    inventory.remembered = inventory.remembered._replace(uid=found.uid)


def recover(operation: Operation, context: WriteContext, namespace: str, desired: Sequence[Object]) -> None:
    """
    If there is no inventory and the instance has objects, has it created again for the kinds of `desired`.

    For an instance of which only the package is known. A kind that may not be listed cannot have been written. An
    object of `desired` with the instance's label is a member, also if somebody has created it again. All the other kinds
    count, too: a worker that is still running may create some. So do those of orphans, which an earlier rollback may have left
    when it deleted all others.
    """
    inventory = context.inventory
    members = frozenset(key_of(obj) for obj in desired)
    inventory.remembered = inventory.remembered._replace(members=members)
    if operation.persist(inventory.read) is None:
        namespaces = frozenset({namespace, *(key_of(obj).namespace for obj in desired)} - {""})
        orphaned = {kind for obj in desired if (kind := resource_for(obj).orphaned)}
        served = filter(None, map(context.resources.find, sorted({kind_of(obj) for obj in desired} | orphaned)))
        has = {one.group_kind: operation.persist(functools.partial(has_objects, context, one, namespaces)) for one in served}
        kinds = frozenset(kind for kind, found in has.items() if found is not None and any(has.values()))
        inventory.remembered = InventoryContent(kinds, namespaces, members=members)
