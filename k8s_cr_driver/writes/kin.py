# SPDX-License-Identifier: Apache-2.0
"""Whether an object goes with the instance, or belongs to another one: it, or what it descends from."""

from __future__ import annotations

from collections.abc import Collection

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of, key_of, kind_of, labels
from k8s_cr_driver.objects.marks import (
    INSTANCE_LABEL,
    RELEASED_BY,
    SHARED,
    appliers,
    is_created,
    is_kept,
    is_managed,
    is_released,
    users,
)
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.owners import named, references


class Kin:
    """`going`: objects that the instance will have deleted. Reads each owner once."""

    def __init__(self, context: WriteContext, going: Collection[ObjectKey]) -> None:
        self._context, self._client, self._going = context, context.client, going
        self._owners: dict[tuple[ObjectKey, str], bool] = {}
        self._of_another: dict[tuple[ObjectKey, str], bool] = {}

    def is_of_another(self, live: Object, chain: int) -> bool:
        """Whether another instance has made or released the object, or one that it descends from."""
        own = self._context.instance  # it may have lost the label
        has_marks = labels(live).get(INSTANCE_LABEL, own) != own or bool(appliers(live) - {own})
        if has_marks or annotations_of(live).get(RELEASED_BY, own) != own:
            return True
        return chain > 0 and any(self._owner(live, one, chain - 1, self._of_another) for one in references(live))

    def goes(self, live: Object, chain: int) -> bool:
        """Whether an object is deleted, or is to be garbage collected, or descends from an object of this instance.

        The garbage collector deletes an object only if all its owners no longer exist.
        """
        if field(live, "metadata", "deletionTimestamp"):
            return True
        if self.is_left(live):
            return False
        if key_of(live) in self._going or (self._is_marked(live) and self._context.inventory.owns(live)):
            return True
        owners = [] if is_released(live) else references(live)  # whoever owns what is released may still let it go
        return bool(owners) and chain > 0 and all(self._owner(live, one, chain - 1, self._owners) for one in owners)

    def _is_marked(self, live: Object) -> bool:
        own = self._context.instance
        return is_managed(live, own) or labels(live).get(INSTANCE_LABEL) == own

    def is_left(self, live: Object) -> bool:
        """Whether the instance only releases an object: one that is kept, was adopted, or is shared with others."""
        if self._context.inventory.content.is_adopted(live):
            return True
        if not self._is_marked(live):
            return False
        others = users(live) - {self._context.instance}
        is_shared = kind_of(live) in SHARED and (not is_created(live) or bool(others))
        return is_shared or is_kept(live)

    def _owner(self, live: Object, owner: Object, chain: int, known: dict[tuple[ObjectKey, str], bool]) -> bool:
        """Whether an owner goes, or is another instance's; False for one of a kind that the cluster does not list."""
        found = named(self._context.resources, owner, key_of(live).namespace)
        if found is None:
            return False
        resource, named_owner = found
        identity = (key_of(named_owner), owner["uid"])
        if identity not in known:
            judge, is_missing = (self.goes, True) if known is self._owners else (self.is_of_another, False)
            try:
                known[identity] = judge(self._client.read_again(resource, named_owner), chain)
            except ApiError as error:
                if error.status != 404:
                    raise
                known[identity] = is_missing
        return known[identity]
