"""Children that shall be replaced: deleted by name, and gone before their owner is asked whether it is whole again."""

from __future__ import annotations

import queue
from collections.abc import Iterable

from k8s_cr_driver.discovery import Resources
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.engine.write import Target
from k8s_cr_driver.errors import ApiError, NotReady, Refused, Report, Stopped, TransportError
from k8s_cr_driver.keys import Key, Object
from k8s_cr_driver.resources.base import Children
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.watch import Broken, Message, Snapshot, Stream


def remove_children(
    operation: Operation, target: Target, resources: Resources, doomed: Iterable[tuple[Children, set[str]]]
) -> None:
    """Deletes the children of the given names and waits; names that are gone already are well. NotReady when late."""
    for children, names in doomed:
        _remove(operation, target, resources, children, names)


def _remove(operation: Operation, target: Target, resources: Resources, children: Children, names: set[str]) -> None:
    resource = resources.find(children.kind, children.version)
    if resource is None:
        raise Refused(f"The cluster does not know {children.kind}, whose objects are the VNFCs of a VDU.")
    inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
    stream = Stream(target.connection, resource, children.namespace, children.selector, inbox.put)
    waiting: dict[Key, Object] | None = None
    asked: set[Key] = set()
    try:
        while waiting is None or waiting:
            asked |= {key for key, live in (waiting or {}).items() if key not in asked and _deleted(target, resources, live)}
            message = _next(operation, inbox, waiting)
            if isinstance(message, Broken):
                raise message.error
            if isinstance(message, Snapshot):
                found = {key: live for key, live in message.objects.items() if key.name in names}
                if waiting is None:
                    waiting = found
                else:
                    waiting = {key: live for key, live in waiting.items() if _same(found.get(key), live)}
            elif message is not None and message.deleted and waiting is not None:
                gone = message.live["metadata"]["uid"]
                waiting = {key: live for key, live in waiting.items() if live["metadata"]["uid"] != gone}
    finally:
        stream.stop()


def _next(operation: Operation, inbox: queue.SimpleQueue[Message], waiting: dict[Key, Object] | None) -> Message | None:
    if operation.stop.is_set():
        raise Stopped("The operation was stopped; retry takes it up again.")
    if operation.remaining() == 0:
        reports = [Report(key, "Waiting", "Terminating", "a VNFC that is replaced is not gone yet") for key in waiting or ()]
        raise NotReady(f"{len(reports)} VNFCs are not gone:", reports)
    try:
        return inbox.get(timeout=min(1.0, operation.remaining()))
    except queue.Empty:
        return None


def _deleted(target: Target, resources: Resources, live: Object) -> bool:
    """Asks for the deletion; False if it has to be asked again."""
    obj = resource_for(live)
    resource = resources.find(obj.key.of)
    assert resource is not None, "its stream tells of it"
    try:
        obj.delete(target.connection, resource, live)
    except TransportError:
        return False
    except ApiError as error:
        if error.status == 429 or error.status >= 500:
            return False
        if error.status not in (404, 409):
            raise
    return True


def _same(now: Object | None, before: Object) -> bool:
    return now is not None and bool(now["metadata"]["uid"] == before["metadata"]["uid"])
