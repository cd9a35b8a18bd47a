"""Create-only kinds: nothing is stored, the answer is in the returned status."""

from tests.fake_api.access import denied
from tests.fake_api.cluster import Cluster
from tests.fake_api.objects import Object, dig


def answer(cluster: Cluster, obj: Object) -> Object:
    """The review with its status; creationTimestamp is null, as the server returns it."""
    status: Object
    if obj["kind"] == "TokenReview":
        known = cluster.knobs.tokens is None or dig(obj, "spec", "token") in cluster.knobs.tokens
        status = {"authenticated": known, "user": {"username": cluster.knobs.user} if known else {}}
    else:
        asked = dig(obj, "spec", "resourceAttributes", default={})
        status = {"allowed": not denied(cluster.knobs, asked.get("verb", ""), asked.get("group", ""),
                                        asked.get("resource", ""), asked.get("namespace", ""))}
    return {**obj, "metadata": {"creationTimestamp": None, **obj["metadata"]}, "status": status}
