# SPDX-License-Identifier: Apache-2.0
"""What the API server's CRD controllers do: accept names, mark a CRD Established, serve its kinds."""

from functools import partial

from tests.fake_api import kinds
from tests.fake_api.cluster import Cluster
from tests.fake_api.kinds import CRDS
from tests.fake_api.objects import Object, dig, now, without


def written(cluster: Cluster, old: Object | None, crd: Object) -> None:
    """After a write of a CRD. A changed spec ends the streams of its kinds, also when only a schema changed."""
    if old is not None and old["spec"] == crd["spec"]:
        return
    if _has(crd, "Established", "True"):
        cluster.serve((crd["spec"]["group"], crd["spec"]["names"]["plural"]), kinds.from_crd(crd))
    elif cluster.knobs.establish_crds:
        establish(cluster, crd["metadata"]["name"])


def establish(cluster: Cluster, name: str) -> None:
    """Let the CRD's names be accepted, or refused, and its kinds be served."""
    with cluster.writing():
        crd = cluster.store.get(CRDS, ("", name))
        if crd is None:
            raise LookupError(f"no CustomResourceDefinition {name!r}")
        names, taken = _names(crd), _taken(cluster, crd)
        accepted = not taken
        reason = f"{taken[-1][0].upper()}{taken[-1][1:]}Conflict" if taken else "NoConflicts"
        conditions = [
            _condition("NamesAccepted", accepted, reason,
                       f'"{names[taken[-1]]}" is already in use' if taken else "no conflicts found"),
            _condition("Established", accepted, "InitialNamesAccepted" if accepted else "NotAccepted",
                       "the initial names have been accepted" if accepted else "not all names are accepted"),
        ]
        stored = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
        status = {"conditions": conditions, "acceptedNames": {"kind": "", "plural": "", **without(names, *taken)},
                  "storedVersions": stored}
        updated = cluster.store.put(CRDS, {**crd, "status": status})
        if accepted:
            cluster.serve((crd["spec"]["group"], names["plural"]), kinds.from_crd(crd))
        cluster.written(updated)


def with_stored_versions(old: Object, new: Object) -> Object:
    """A version that stores objects is one that has stored some, from then on (apiextensions, PrepareForUpdate)."""
    stored = dig(old, "status", "storedVersions", default=[])
    added = [v["name"] for v in new["spec"]["versions"] if v.get("storage") and v["name"] not in stored]
    return {**new, "status": {**new["status"], "storedVersions": [*stored, *added]}} if stored and added else new


def removed(cluster: Cluster, gone: Object) -> None:
    """After a CRD was removed: its names are free, for CRDs of its group that were refused."""
    cluster.serve((gone["spec"]["group"], gone["spec"]["names"]["plural"]), [])
    cluster.later(partial(_accept_others, cluster, gone["spec"]["group"]))


def _accept_others(cluster: Cluster, group: str) -> None:
    for crd in cluster.store.objects(CRDS):
        if crd["spec"]["group"] == group and _has(crd, "NamesAccepted", "False") and not _taken(cluster, crd):
            establish(cluster, crd["metadata"]["name"])


def _names(crd: Object) -> Object:
    names = crd["spec"]["names"]
    return {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List", **names}


def _taken(cluster: Cluster, crd: Object) -> list[str]:
    """The fields of the names that another CRD of the group has; the last one is reported. Short names are left out."""
    names, name, group = _names(crd), crd["metadata"]["name"], crd["spec"]["group"]
    others = [dig(other, "status", "acceptedNames", default={}) for other in cluster.store.objects(CRDS)
              if other["spec"]["group"] == group and other["metadata"]["name"] != name]
    taken = [field for alike in (("plural", "singular"), ("kind", "listKind")) for field in alike
             if any(names[field] in [other.get(one) for one in alike] for other in others)]
    return taken or ["kind"] * (name in cluster.knobs.refuse_crd_names)


def _has(crd: Object, name: str, status: str) -> bool:
    return any(condition["type"] == name and condition["status"] == status
               for condition in dig(crd, "status", "conditions", default=[]))


def _condition(name: str, holds: bool, reason: str, message: str) -> Object:
    return {"type": name, "status": "True" if holds else "False", "reason": reason, "message": message,
            "lastTransitionTime": now()}
