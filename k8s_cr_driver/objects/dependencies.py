# SPDX-License-Identifier: Apache-2.0
"""Which object waits for which: a graph for applying a set of objects, and one for deleting it.

Edges come from structure (a CustomResourceDefinition before its objects, a Namespace before its contents), from the author
(the annotation `config.kubernetes.io/depends-on`), from what an object names (`references`), and from guesses about which
workloads serve a kind (`backends`). A weaker edge that would close a cycle is dropped; a cycle of the author's own is an error.
Objects without an edge are applied in parallel: controllers and kubelets retry, and so does the engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.backends import (
    Backends,
    Bindings,
    Budget,
    aggregated,
    callers,
    controllers,
    role_of,
    servers,
    stops_config_maps,
)
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.edges import Edges, later, one_way, turned, untangled
from k8s_cr_driver.objects.fields import field, pod_spec, similar
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of
from k8s_cr_driver.objects.references import SERVICE, References

DEPENDS_ON = "config.kubernetes.io/depends-on"
"""As in kpt and Config Sync: `group/kind/name` or `group/namespaces/namespace/kind/name`, separated by commas."""

REFERENCES = 100_000
"""In the annotations of one package, or of the live objects of one deletion, together."""

_RANKS = [
    *("Namespace", "CustomResourceDefinition", "PriorityClass", "RuntimeClass", "StorageClass"),
    *("ResourceQuota", "LimitRange", "NetworkPolicy"),
    *("ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"),
    *("Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "Service"),
    *("DaemonSet", "StatefulSet", "Deployment", "ReplicaSet", "ReplicationController", "Job", "CronJob", "Pod"),
]
_LAST = ["APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]


def rank(kind: GroupKind) -> int:
    """The place of a kind in the queue of what may run at once; custom resources after all workloads, webhooks last."""
    if not is_builtin(kind):
        return len(_RANKS) + 1
    if kind.kind in _LAST:
        return len(_RANKS) + 2 + _LAST.index(kind.kind)
    return _RANKS.index(kind.kind) if kind.kind in _RANKS else len(_RANKS)


def check(objects: Sequence[Object]) -> None:
    """Raise InvalidPackage if the annotations of a whole package name objects that are not in it, form a cycle, or are many."""
    keys = {key_of(obj) for obj in objects}
    left = REFERENCES
    for obj in objects:
        left -= _number_of_references(obj)
        if left < 0:
            raise InvalidPackage(f"{_where(obj)}: the package has more than {REFERENCES:,} references; leave some out")
    for obj in objects:
        for key in depends_on(obj):
            if key not in keys:
                near = similar(_reference(key), map(_reference, sorted(keys)))
                remedy = f"did you mean {near}?" if near else "add it to the package, or remove the reference"
                raise InvalidPackage(f"{_where(obj)} names {_reference(key)}, which is not in the package; {remedy}")
    graph(objects)


def graph(objects: Sequence[Object], pairs: Iterable[tuple[ObjectKey, ObjectKey]] = ()) -> Edges:
    """
    For each object the objects that must be ready before it is applied.

    `pairs` are (first, later), as the hook `applied_after` gives them. References to what is not among `objects` are left
    out, so that a part of a package can be applied; `check` finds them. Raises InvalidPackage for annotations that are
    malformed or form a cycle.
    """
    keys = {key_of(obj) for obj in objects}
    explicit = {key_of(obj): keys.intersection(depends_on(obj)) for obj in objects}
    if len(keys) < 2:
        return {key: set() for key in keys}
    fixed = _structure(objects)
    for key, needed in explicit.items():
        fixed[key] = (fixed[key] | needed) - {key}
    _check_acyclic(fixed)
    backends = Backends(objects)
    return untangled(keys, [fixed, later(pairs), servers(objects, backends), _after_services(objects, backends)])


def written_first(objects: Sequence[Object], ready_first: Edges) -> Edges:
    """
    For each object those that it names, which are written before it, and need not be ready; without those of `ready_first`.

    `ready_first` is the result of `graph`, with which no edge closes a cycle.
    """
    keys = {key_of(obj) for obj in objects}
    if len(keys) < 2:
        return {key: set() for key in keys}
    stated, by_field = _references(objects, keys)
    edges = untangled(keys, [ready_first, turned(stated), turned(by_field)])
    return {key: needed - ready_first[key] for key, needed in edges.items()}


def deletion(
    objects: Sequence[Object], pairs: Iterable[tuple[ObjectKey, ObjectKey]] = (), stay: Collection[ObjectKey] = ()
) -> Edges:
    """
    For each object the objects that must be deleted before it.

    `objects` may be live ones or manifests. `pairs` are (first, later), as the hook `delete_before` gives them; those that
    `stay` are only released. What names an object goes before it, and before the bindings of the account that it names, except
    beyond limits, and unless both name each other. Custom resources and their CustomResourceDefinitions go before the
    controllers that act on them, which take finalizers off, and these before what they need to work. Never raises: edges that
    close a cycle are dropped.
    """
    keys = {key_of(obj) for obj in objects}
    if len(keys) < 2:
        return {key: set() for key in keys}
    leaving = keys.difference(stay)
    explicit: Edges = defaultdict(set)
    # Live objects may have more than a package may have
    annotated = Budget(f"References in annotations {DEPENDS_ON}", REFERENCES)
    for obj in sorted(objects, key=_number_of_references):  # so that one with too many takes no other's away
        if annotated.allows(_number_of_references(obj)):
            explicit[key_of(obj)] = keys.intersection(depends_on(obj, lenient=True))
    references = one_way(_references([obj for obj in objects if key_of(obj) in leaving], leaving))
    layers = [turned(_structure(objects)), later(pairs), turned(explicit), *references]
    return untangled(keys, [{}, *layers, *_for_finalizers(objects)])


def repoint(obj: Object, names: Mapping[ObjectKey, str]) -> None:
    """Let the annotation of `obj` name others by their new `names`. The annotation is well-formed: `check` has read it."""
    references = depends_on(obj)
    if not names.keys().isdisjoint(references):
        renamed = (key._replace(name=names.get(key, key.name)) for key in references)
        obj["metadata"]["annotations"] = {**annotations_of(obj), DEPENDS_ON: ",".join(map(_reference, renamed))}


def _structure(objects: Sequence[Object]) -> Edges:
    """What the API server needs to accept an object: its kind, its namespace, and what admission looks up."""
    keys = {key_of(obj) for obj in objects}
    definitions = {defined_by(obj): key_of(obj) for obj in objects if kind_of(obj) == CRD and not is_refused(obj)}
    edges: Edges = defaultdict(set)
    for obj in objects:
        key = key_of(obj)
        if key.group_kind in definitions:
            edges[key].add(definitions[key.group_kind])
        if key.namespace:
            edges[key].add(ObjectKey(*NAMESPACE, "", key.namespace))
        edges[key].update(_looked_up(obj, key))
    return defaultdict(set, {key: needed & keys for key, needed in edges.items()})


def _after_services(objects: Sequence[Object], backends: Backends) -> Edges:
    """Webhook configurations and API services after their Services: else a webhook whose rules match its own Service has none.

    Not after its workload, which may have to find the webhook configuration to become ready, as to fill in its own CA. Only
    a webhook that keeps the inventory from being written comes after that, too: nothing can be written until it responds.
    """
    called = {caller: needed for caller, needed in callers(objects, backends).items() if caller.kind in _LAST}
    stops = {key_of(obj) for obj in objects if key_of(obj) in called and stops_config_maps(obj)}
    return {
        caller: {key for key in needed if caller in stops or key.kind == "Service"} for caller, needed in called.items()
    }


def _looked_up(obj: Object, key: ObjectKey) -> Iterable[ObjectKey]:
    """Objects without which admission forbids `obj` for good, where a controller would only wait."""
    if key.group_kind == GroupKind("", "Pod"):
        spec = pod_spec(obj)
        yield ObjectKey("", "ServiceAccount", key.namespace, str(field(spec, "serviceAccountName")))
        yield ObjectKey("scheduling.k8s.io", "PriorityClass", "", str(field(spec, "priorityClassName")))
        yield ObjectKey("node.k8s.io", "RuntimeClass", "", str(field(spec, "runtimeClassName")))
    elif key.kind in ("RoleBinding", "ClusterRoleBinding"):
        yield role_of(obj)


def _references(objects: Sequence[Object], keys: Collection[ObjectKey]) -> tuple[Edges, Edges]:
    """
    For each object those that name it, by kind and name, and by a field that is called like its kind.

    Bindings are also of the second for what runs under their accounts. A custom resource that names a Service needs also what
    responds there: its controller may have to ask that before it takes a finalizer off. An aggregated ClusterRole names those
    that it selects: when one of these is deleted, Kubernetes applies the rest of its rules, which creates it if it was deleted
    just before.
    """
    stated: Edges = defaultdict(set)
    by_field: Edges = defaultdict(set)
    accounts: Edges = defaultdict(set)
    budget, references, backends = Budget("References in specs"), References(keys), Backends(objects)
    for obj in objects:
        key, named = key_of(obj), references.of(obj)
        if budget.allows(len(named.stated) + len(named.by_field) + len(named.users)):
            stated[key] |= named.users
            for found, edges in ((named.stated, stated), (named.by_field, by_field)):
                for other in found | (_behind(found, backends) if not is_builtin(key.group_kind) else set()):
                    edges[other].add(key)
        for account in named.accounts:
            accounts[account].add(key)
    for key, selected in aggregated(objects).items():
        for other in selected if budget.allows(len(selected)) else ():
            stated[other].add(key)
    bindings = Bindings(objects)
    for account, users in accounts.items():
        several = bindings.of(account)
        for binding in several if budget.allows(len(several) * len(users)) else ():
            by_field[binding.key] |= users
    return stated, by_field


def _behind(named: Iterable[ObjectKey], backends: Backends) -> set[ObjectKey]:
    """The workloads of those that are Services."""
    services = (key for key in named if key.group_kind == SERVICE)
    return set().union(*(backends.of({"namespace": key.namespace, "name": key.name}) for key in services))


def _for_finalizers(objects: Sequence[Object]) -> tuple[Edges, Edges]:
    """
    Whoever takes a finalizer off, or is asked when that is done, goes after the objects that may have one.

    The second: what it may need to work goes after it. An autoscaler of a custom resource, which goes before that, closes a
    cycle with both; it is only of these that it is not needed.
    """
    needs: Edges = defaultdict(set)
    backends = Backends(objects)
    edges = turned(servers(objects, backends))
    for caller, called in callers(objects, backends).items():
        for backend in called:
            edges[backend].add(caller)
    custom: dict[str, set[ObjectKey]] = defaultdict(set)
    settings: dict[str, set[ObjectKey]] = defaultdict(set)
    for obj in objects:
        key = key_of(obj)
        if key.group_kind == CRD or not is_builtin(key.group_kind):
            custom[defined_by(obj).group if key.group_kind == CRD else key.group].add(key)
        elif key.namespace and pod_spec(obj) is None:
            settings[key.namespace].add(key)
    budget = Budget("Controllers and what they act on")
    for controller in controllers(objects, custom.keys()):
        for group in filter(controller.acts_on, custom):
            if budget.allows(len(custom[group])):
                edges[controller.key] |= custom[group]
        needed = controller.permissions | settings[controller.key.namespace]
        for key in needed if budget.allows(len(needed)) else ():
            needs[key].add(controller.key)
    return edges, needs


def _number_of_references(obj: Object) -> int:
    """Of the annotation, at most, without a look at any."""
    references = annotations_of(obj).get(DEPENDS_ON)
    return 0 if references is None else references.count(",") + 1


def depends_on(obj: Object, lenient: bool = False) -> list[ObjectKey]:
    """The references of the annotation. Raises InvalidPackage for a malformed one, which `lenient` leaves out."""
    keys = []
    for reference in filter(None, map(str.strip, annotations_of(obj).get(DEPENDS_ON, "").split(","))):
        match reference.split("/"):
            case [group, "namespaces", namespace, kind, name] if namespace and kind and name:
                keys.append(ObjectKey(group, kind, namespace, name))
            case [group, kind, name] if kind and name:
                keys.append(ObjectKey(group, kind, "", name))
            case _ if not lenient:
                raise InvalidPackage(
                    f"{_where(obj)} holds {reference!r}; write group/namespaces/namespace/kind/name, or for an object "
                    "of the cluster group/kind/name (the group of v1 is empty)"
                )
    return keys


def _where(obj: Object) -> str:
    return f"{key_of(obj)}: annotation {DEPENDS_ON}"


def _reference(key: ObjectKey) -> str:
    """`key` as the annotation has it."""
    return "/".join([key.group, *(["namespaces", key.namespace] if key.namespace else []), key.kind, key.name])


def _check_acyclic(edges: Edges) -> None:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        cycle: list[ObjectKey] = error.args[1]
        raise InvalidPackage(
            f"objects depend on each other in a cycle: {' needs '.join(map(str, reversed(cycle)))}; remove one "
            f"reference from the annotation {DEPENDS_ON}"
        ) from None
