# SPDX-License-Identifier: Apache-2.0
"""What the API server's CRD controllers do: accept names, mark a CRD Established, serve its kinds."""

from tests.fake_api import kinds
from tests.fake_api.cluster import Cluster
from tests.fake_api.deletion import CRDS
from tests.fake_api.objects import Object, dig, now


def written(cluster: Cluster, old: Object | None, crd: Object) -> None:
    """After a write of a CRD. A changed spec ends the streams of its kinds, also when only a schema changed."""
    if old is not None and old["spec"] == crd["spec"]:
        return
    if _established(crd):
        cluster.serve((crd["spec"]["group"], crd["spec"]["names"]["plural"]), kinds.from_crd(crd))
    elif cluster.knobs.establish_crds:
        establish(cluster, crd["metadata"]["name"])


def establish(cluster: Cluster, name: str) -> None:
    """Let the CRD's names be accepted, or refused, and its kinds be served."""
    with cluster.writing():
        crd = cluster.store.get(CRDS, ("", name))
        if crd is None:
            raise LookupError(f"no CustomResourceDefinition {name!r}")
        refusal = _refusal(cluster, crd)
        accepted = not refusal
        conditions = [
            _condition("NamesAccepted", accepted, "NoConflicts" if accepted else "KindConflict",
                       refusal or "no conflicts found"),
            _condition("Established", accepted, "InitialNamesAccepted" if accepted else "NotAccepted",
                       "the initial names have been accepted" if accepted else "not all names are accepted"),
        ]
        names = crd["spec"]["names"]
        stored = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
        status = {"conditions": conditions, "acceptedNames": names if accepted else {"kind": "", "plural": ""},
                  "storedVersions": stored}
        updated = cluster.store.put(CRDS, {**crd, "status": status})
        if accepted:
            cluster.serve((crd["spec"]["group"], names["plural"]), kinds.from_crd(crd))
        cluster.written(updated)


def _refusal(cluster: Cluster, crd: Object) -> str:
    names, group = crd["spec"]["names"], crd["spec"]["group"]
    if crd["metadata"]["name"] in cluster.knobs.refuse_crd_names:
        return f'"{names["kind"]}" is already in use'
    for kind in cluster.kinds():
        if kind.group == group and kind.kind == names["kind"] and kind.plural != names["plural"]:
            return f'"{names["kind"]}" is already in use'
    return ""


def _established(crd: Object) -> bool:
    return any(condition["type"] == "Established" and condition["status"] == "True"
               for condition in dig(crd, "status", "conditions", default=[]))


def _condition(name: str, holds: bool, reason: str, message: str) -> Object:
    return {"type": name, "status": "True" if holds else "False", "reason": reason, "message": message,
            "lastTransitionTime": now()}
