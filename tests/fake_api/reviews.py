# SPDX-License-Identifier: Apache-2.0
"""Create-only kinds: nothing is stored, the answer is in the returned status."""

from collections.abc import Iterator

from tests.fake_api import kinds
from tests.fake_api.access import denied
from tests.fake_api.cluster import Cluster
from tests.fake_api.objects import Object, dig


def answer(cluster: Cluster, obj: Object) -> Object:
    """The review with its status; creationTimestamp is null, as the server returns it."""
    status: Object
    if obj["kind"] == "TokenReview":
        known = cluster.knobs.tokens is None or dig(obj, "spec", "token") in cluster.knobs.tokens
        status = {"authenticated": known, "user": {"username": cluster.knobs.user} if known else {}}
    elif obj["kind"] == "SelfSubjectRulesReview":
        rules = [*_rules(cluster, dig(obj, "spec", "namespace", default=""))]
        status = {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}
    else:
        asked = dig(obj, "spec", "resourceAttributes", default={})
        status = {"allowed": not denied(cluster.knobs, asked.get("verb", ""), asked.get("group", ""),
                                        asked.get("resource", ""), asked.get("namespace", ""))}
    return {**obj, "metadata": {"creationTimestamp": None, **obj["metadata"]}, "status": status}


def _rules(cluster: Cluster, namespace: str) -> Iterator[Object]:
    """What is not denied: a verb that no rule names is allowed on everything, also on kinds that are yet to come."""
    if not cluster.knobs.denied:
        yield {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return
    for verb in kinds.ALL_VERBS:
        if not any(denied_verb in ("*", verb) for denied_verb, *_ in cluster.knobs.denied):
            yield {"verbs": [verb], "apiGroups": ["*"], "resources": ["*"]}
            continue
        for kind in cluster.kinds():
            if not denied(cluster.knobs, verb, kind.group, kind.plural, namespace):
                yield {"verbs": [verb], "apiGroups": [kind.group], "resources": [kind.plural]}
