# SPDX-License-Identifier: Apache-2.0
"""
What an error response to a write means: the exception to raise, and whether the same write may succeed later.

The HTTP status alone does not say: a 403 may be a quota that is not counted yet, a 500 a manifest that no retry repairs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Set

from k8s_cr_driver.errors import ApiError, Conflict, Contended, DriverError, Forbidden, Refused, Said, passes
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.fields import entries, field
from k8s_cr_driver.objects.immutable import REPLACE, changed_fields, concerns
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, is_of_every_namespace
from k8s_cr_driver.objects.managed_fields import has_applier, managers_of
from k8s_cr_driver.objects.marks import KEEP, KEPT_BY, SHARED, is_kept, manager, users
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.replicas import explicit_count

NOT_RESTORED = "Values taken from other managers by force are restored by neither rollback nor terminate."
NEVER_CHANGED = "Other VNF instances use it, so it is not changed. Bring it as it is on the cluster, or under another name."
MIGRATE = (
    "To have a version removed, write each object of the kind again, and then remove the version from status.storedVersions."
)
_FORCE = (
    "Remove them from the manifest, or set additionalParams force-conflicts: true in a new request to take them by force. "
    + NOT_RESTORED
)
_SHOWN = 20
"""Fields of a conflict that an error names."""
_OTHER_INSTANCE = re.compile(rf"{re.escape(manager(''))}[0-9a-f]{{8}}-[0-9a-f-]{{27}}")


ADMISSION = frozenset(
    GroupKind("admissionregistration.k8s.io", f"{kind}{form}")
    for kind in ("Validating", "Mutating")
    for form in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)
"""The kinds that decide which writes are admitted."""
_OWN_POLICY = "If a webhook or policy that only a former package of this VNF instance has denies it, delete that and retry."


class Unchangeable(Refused):
    """
    A change of `live` touches an immutable field, by `what` the API server said.

    `error`: the refusal, None if the API server has ignored the change. `is_forced`: fields of others were to be taken.
    """

    def __init__(self, what: str, remedy: str, live: Object, error: ApiError | None = None) -> None:
        super().__init__(f"{what}. {remedy}")
        self.what, self.remedy, self.live, self.error, self.is_forced = what, remedy, live, error, False


class Immutable(Unchangeable):
    """The object may be replaced."""


class NotReplaced(Unchangeable):
    """The object stays as it is."""


class LeftAsItIs(DriverError):
    """A rollback leaves the object to others, or with what the API server does not take back; nothing is left to do for it."""


class NoDryRun(Refused):
    """A webhook or an API server does not look at dry runs; what it would say is not known."""


class OtherOwners(NoDryRun):
    """The API server can apply the object only after its fields have other owners, or were moved to the new version."""


class Replaced(Contended):
    """The object that was to be changed no longer exists; another one may have its name."""


def deleted(key: ObjectKey) -> Replaced:
    return Replaced(f"{key} was deleted while it was about to be changed")


def explained(error: ApiError, obj: CustomResource, instance: str, live: Object | None = None) -> DriverError:
    """The error for the user; the ApiError itself where `is_transient` decides."""
    if _is_of_another(error):
        return deleted(obj.key)
    if is_of_fields(error):
        is_used = obj.key.group_kind in SHARED and users(live or {}) - {instance}
        remedy = NEVER_CHANGED if is_used else _FORCE
        return Conflict(
            f"{obj.key}: others manage fields that the manifest sets: {conflicting(error, instance, obj.manifest)}. {remedy}",
            [where for _, where, _ in error.causes],
        )
    if live is not None and _is_immutable(error, obj.manifest, live):
        changed = [] if is_denied(error) else changed_fields(live, obj.manifest)
        given = [path for path in changed if field(obj.manifest, *path.split(".")) is not None]  # the others may be defaults
        fields = "".join(f"{path}: " for path in given or changed if path not in error.message)
        return immutable(f"{obj.key}: {fields}{error.message}", obj, live, error)
    if error.status in (400, 403, 405, 415, 422, 501) and Said.NO_DRY_RUN in error.said:
        return NoDryRun(f"{obj.key}: {error.message}")
    if error.status == 403:
        return error if may_pass(error) else Forbidden(f"{obj.key}: {error.message}")
    is_unmergeable = error.status == 500 and Said.UNMERGEABLE in error.said
    if error.status in (400, 413, 415, 422) or is_unmergeable or is_denied_for_good(error):
        remedy = f". {MIGRATE}" if any("storedVersions" in where for _, where, _ in error.causes) else ""
        return Refused(f"{obj.key}: {error.message or error.reason}{remedy}")
    return error


def immutable(what: str, obj: CustomResource, live: Object, error: ApiError | None = None) -> Refused:
    """For a change that touches an immutable field; `what` names the object, and what the API server has said or done."""
    if is_kept(obj.manifest) or is_kept(live):
        why = f"It is annotated with {KEEP}, so it is never deleted, nor replaced"
    elif obj.key.group_kind in SHARED or is_of_every_namespace(obj.key):
        why = "It is never replaced, as objects of others would be deleted with it"
    else:
        remedy = f'Annotate it with {REPLACE}: "true" to have it deleted and created again.'
        return Immutable(what, remedy, live, error)
    return NotReplaced(what, f"{why}. Leave the field as it is, or delete the object yourself.", live, error)


def is_of_version(error: ApiError, live: Object, api_version: str) -> bool:
    """
    Whether the API server cannot apply an object in another version than somebody has written it in before.

    structured-merge-diff, typed: a field of the former version, such as a default of its schema, is unknown in the new one.
    """
    written = entries(live, "metadata", "managedFields")
    return is_undeclared(error) and any(entry.get("apiVersion") != api_version for entry in written)


def not_in_version(error: ApiError, obj: CustomResource, live: Object) -> DriverError:
    """Of an object whose fields were moved to the version in which it is applied."""
    return immutable(f"{obj.key}: {error.message}", obj, live, error) if is_undeclared(error) else error


def is_undeclared(error: ApiError) -> bool:
    """Not about a field of the manifest, which is one of a typed patch object."""
    return error.status == 500 and Said.UNDECLARED in error.said and Said.UNMERGEABLE not in error.said


def _is_of_another(error: ApiError) -> bool:
    """Whether an apply named the uid of a deleted object: a 409 if there is none of its name, a 422 if there is another.

    kubernetes/kubernetes#127625.
    """
    if error.status == 409:
        return Said.OF_ANOTHER in error.said
    return error.status == 422 and any(where == "metadata.uid" for _, where, _ in error.causes)


def _is_immutable(error: ApiError, manifest: Object, live: Object) -> bool:
    """By the server's words, or because it refuses a field that is known to be immutable and that changes.

    A webhook or policy, with whatever code, may deny all changes for a while: it counts only if replacement is asked for.
    """
    if is_denied(error):
        is_asked_for = any(annotations_of(one).get(REPLACE) == "true" for one in (manifest, live))
        return is_asked_for and is_denied_for_good(error) and Said.CALLED_IMMUTABLE in error.said
    if error.status != 422:
        return False
    changed = changed_fields(live, manifest)
    named = any(concerns(where, path) for _, where, _ in error.causes for path in changed)
    return named or Said.IMMUTABLE in error.said


def other_faults(error: ApiError, manifest: Object, live: Object) -> set[str]:
    """The fields that a 422 refuses for another reason than that they never change."""
    changed = changed_fields(live, manifest)
    return {
        where
        for _, where, message in error.causes
        if Said.IMMUTABLE not in Said.of(message) and not any(concerns(where, path) for path in changed)
    }


def is_of_fields(error: ApiError) -> bool:
    """Whether an apply was refused because others own fields of it."""
    return error.status == 409 and bool(error.causes) and not is_denied(error)


def conflicting(conflict: ApiError, instance: str, manifest: Object) -> str:
    """The fields of a conflict, with their managers and without values of the `manifest`, and the ids of other instances."""
    shown = [f"{where} ({message})" if where else message for _, where, message in conflict.causes[:_SHOWN]]
    more = len(conflict.causes) - len(shown)
    fields = "; ".join([*shown, f"and {more:,} more"] if more else shown)
    return SentValues([manifest]).removed_from(_hidden(fields, instance))


def autoscaled(key: ObjectKey, conflict: ApiError, autoscaler: str) -> Conflict:
    """For a conflict about the count alone, which `autoscaler` sets."""
    fields = [where for _, where, _ in conflict.causes]
    names = ", ".join(one.removeprefix(".") for one in fields)
    return Conflict(f"{key}, {names}: {autoscaler} has set it. Change it there, instead of using SCALE", fields)


def is_left_by_keeper(conflict: ApiError, live: Object) -> bool:
    """Whether all fields of a conflict are KEPT_BY's no more, as `live` says: a dry run took them back, which is not stored."""
    were_theirs = all(f'"{KEPT_BY}"' in message for _, _, message in conflict.causes)
    return is_of_fields(conflict) and not has_applier(live, KEPT_BY) and were_theirs


def _hidden(text: str, instance: str) -> str:
    """Without the ids of other instances."""
    return _OTHER_INSTANCE.sub(lambda found: found[0] if found[0] == manager(instance) else "another VNF instance", text)


def reset_count(obj: CustomResource, live: Object, instance: str, autoscaler: str = "") -> str:
    """Which count of the object others have set, to what, and the remedy; "" if `live` has those that were applied.

    `autoscaler`: the one that scales the object, which has written as a manager that many controllers share.
    """
    for one in (obj, *obj.parts()):
        path, wanted, count = one.replicas() or (), explicit_count(one), explicit_count(one, live)
        if count is None and live.get("apiVersion") != obj.manifest["apiVersion"]:
            continue  # nobody knows under which name another version has it
        if wanted is not None and wanted != (count or 0):  # a webhook in Go may leave out a count of 0
            others = [who for who in managers_of(live, path) if who != manager(instance)]
            who = (others and autoscaler) or _hidden(", ".join(others), instance) or "an admission webhook"
            return f"{'.'.join(path)} is {count} instead of {wanted}: {who} has set it. Change it there, instead of using SCALE"
    return ""


def is_denied(error: Exception | None) -> bool:
    """Whether an admission webhook or policy has denied the request."""
    return isinstance(error, ApiError) and Said.DENIED in error.said


def is_denied_for_good(error: ApiError) -> bool:
    """
    The same, if no repetition helps by the code, of which a webhook may choose any (apiserver, webhook/errors, ToStatusErr).

    With 429 or 5xx it cannot say yet, with 404 it misses something that may be to come, with 409 something is in the way.
    """
    return is_denied(error) and not passes(error) and error.status not in (404, 409)


def may_pass(error: ApiError) -> bool:
    """403s that are about order, not about permissions.

    A namespace that is terminating, a ServiceAccount or class that does not exist yet, a quota that is not counted yet, or
    one for requests that a LimitRange sets which does not exist yet. Not RBAC's own: "not found" in these is about a role of
    the account itself (`RBAC: clusterrole ... not found`) or of one that it may not grant.
    """
    return Said.TOO_EARLY in error.said and Said.RBAC not in error.said


def is_transient(error: Exception, obj: CustomResource, kinds: Collection[GroupKind], namespaces: Collection[str]) -> bool:
    """Whether the same request may succeed later. `kinds` and `namespaces`: those that the set itself creates."""
    if isinstance(error, ApiError) and error.status == 404 and not is_denied(error):
        is_of_namespace = error.subject == ("namespaces", obj.key.namespace)
        return obj.key.namespace in namespaces or (obj.key.group_kind in kinds and not is_of_namespace)
    return passes(error) or (isinstance(error, ApiError) and error.status in (403, 404, 409, 410))


def with_policy_remedy(error: DriverError, kinds: Set[GroupKind]) -> DriverError:
    """
    With the remedy for a denial, if the instance has webhooks or policies (`kinds`): a former one may be the cause.

    The driver deletes them last, as all that the set does not have. Before that, nobody knows that a change will stay.
    """
    if type(error) not in (Refused, Forbidden) or Said.DENIED not in Said.of(str(error)) or kinds.isdisjoint(ADMISSION):
        return error
    return type(error)(f"{str(error).rstrip('.')}. {_OWN_POLICY}")


def missing(error: DriverError, key: ObjectKey) -> DriverError:
    """The error of a 404 that is not transient, with the remedy."""
    if isinstance(error, ApiError) and error.status == 404 and not is_denied(error):
        return Refused(f"{key}: {error.message}. {_remedy(*error.subject)}")
    return error


def with_remedy(error: Exception) -> str:
    """The text of an error after which a write is repeated."""
    if isinstance(error, ApiError) and error.status == 404 and error.subject[1] and not is_denied(error):
        return f"{error}. {_remedy(*error.subject)}"
    return str(error)


def _remedy(resource: str, name: str) -> str:
    """Of a 404, by what was not found; a path that is not served has no subject."""
    if resource == "namespaces":
        return "Add the namespace to the package, or create it first."
    if name:
        return "Add that object to the package, or create it first."
    return "Add the CRD to the package, or create it first."
