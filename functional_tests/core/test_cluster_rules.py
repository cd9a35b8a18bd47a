# SPDX-License-Identifier: Apache-2.0
"""What policies, webhooks, stored versions, finalizers, autoscalers and Events of a real cluster do to an operation."""

from __future__ import annotations

import copy
import time

from kubernetes.client.exceptions import ApiException

from ..cluster import CRDS, INVENTORY, Cluster
from ..conftest import Logged
from ..objects import Object, Place, config_map, deployment, make
from ..packages import Package
from ..testbed.processes import until
from ..vnf import Vnf

PLACE = Place("rules")
ADMISSION = "admissionregistration.k8s.io/v1"
GUARD = f"guard.{PLACE.group}"
ROUTES = f"routes.{PLACE.group}"
# Seconds: until an API server enforces a new policy, and until an object is there that an operation creates.
ENFORCED_WITHIN, THERE_WITHIN = 60.0, 30.0
# More than the 30 s after which a status that nobody writes counts as current.
SILENCE = 34


def routes(*versions: str) -> Object:
    """A CRD of these versions, the last of which is stored."""
    crd = PLACE.crd("Route")
    [version] = crd["spec"]["versions"]
    crd["spec"]["versions"] = [{**copy.deepcopy(version), "name": one, "storage": one == versions[-1]} for one in versions]
    return crd


def route(version: str, host: str) -> Object:
    return make(f"{PLACE.group}/{version}", "Route", "one", spec={"host": host})


def hook(name: str, when: str) -> Object:
    made = config_map(name)
    return {**made, "metadata": {**made["metadata"], "annotations": {"helm.sh/hook": when}}}


def webhook(failure_policy: str = "Fail") -> Object:
    """Nobody serves it. It is called for the inventory of one instance alone, as others work on the same cluster."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    one = {
        "name": "guard.example.org",
        "clientConfig": {"service": {"name": "nobody", "namespace": PLACE.name}},
        "rules": [rule],
        "failurePolicy": failure_policy,
        "objectSelector": {"matchLabels": {INVENTORY: "${ID}"}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    return make(ADMISSION, "ValidatingWebhookConfiguration", GUARD, webhooks=[one])


NEVER_READY = [PLACE.crd("Gate", status=True), PLACE.custom("Gate", "never")]
CREDENTIALS = make("v1", "Secret", "credentials", stringData={"token": "sample"})
PROVIDER = PLACE.custom("ProviderConfig", "cloud", credentials={"secretRef": {"name": "credentials", "key": "token"}})
PACKAGE = Package(
    {
        "web.yaml": deployment("web"),
        "route.yaml": [routes("v1"), route("v1", "a.example.org")],
        "route-2.yaml": [routes("v1", "v2"), route("v2", "b.example.org"), *NEVER_READY],
        "settings.yaml": [config_map("first", mode="good"), config_map("last", mode="good")],
        "settings-2.yaml": [config_map("first", mode="better"), config_map("last", mode="bad")],
        "ignored.yaml": webhook("Ignore"),
        "webhook.yaml": [config_map("first", mode="better"), webhook(), *NEVER_READY],
        "addon.yaml": [PLACE.crd("Addon", status=True), PLACE.custom("Addon", "cloud", version=1)],
        "addon-2.yaml": [PLACE.crd("Addon", status=True), PLACE.custom("Addon", "cloud", version=2)],
        "bucket.yaml": [
            *map(PLACE.crd, ("Bucket", "ProviderConfig")),
            *(CREDENTIALS, PROVIDER, PLACE.custom("Bucket", "records", providerConfigRef={"name": "cloud"})),
        ],
        "hooks.yaml": [config_map("plain"), hook("cleanup", "pre-delete"), hook("try", "test"), hook("prepare", "pre-install")],
    },
    vdus={"Web": "web"},
    parameters={"ID": {"type": "string", "required": False}},
)


def policy() -> tuple[Object, Object]:
    """Denies a mode of ConfigMaps in this module's Namespace."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    validation = {"expression": "!has(object.data) || !('mode' in object.data) || object.data.mode != 'bad'"}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{**validation, "message": "no bad mode"}]}
    selected = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": PLACE.name}}}
    binding = {"policyName": f"mode.{PLACE.group}", "validationActions": ["Deny"], "matchResources": selected}
    return (
        make(ADMISSION, "ValidatingAdmissionPolicy", f"mode.{PLACE.group}", spec=spec),
        make(ADMISSION, "ValidatingAdmissionPolicyBinding", f"mode.{PLACE.group}", spec=binding),
    )


def enforces(cluster: Cluster) -> bool:
    try:
        cluster.apply(config_map("attempt", PLACE.name, mode="bad"), "a-user")
    except ApiException:
        return True
    cluster.delete("ConfigMap", "attempt", PLACE.name)
    return False


def modes(cluster: Cluster) -> list[str]:
    lives = [cluster.get("ConfigMap", name, PLACE.name) for name in ("first", "last")]
    return [live["data"]["mode"] for live in lives if live]


def of_place(cluster: Cluster, kind: str, name: str) -> Object | None:
    return cluster.get(kind, name, PLACE.name, PLACE.version)


def test_a_change_that_a_policy_denies_writes_nothing(vnf: Vnf, package: str, cluster: Cluster):
    vnf.instantiate("settings.yaml")
    with cluster.holding(*policy()):
        assert until(lambda: enforces(cluster), ENFORCED_WITHIN), "the policy is not enforced"
        operation = vnf.begin_change(package, "settings-2.yaml")
        assert "no bad mode" in vnf.failure(operation)["detail"]
        assert modes(cluster) == ["good", "good"]
        vnf.roll_back(operation)


def test_a_rollback_keeps_the_version_in_which_objects_may_be_stored(
    vnf: Vnf, package: str, cluster: Cluster, logged: Logged
):
    vnf.instantiate("route.yaml")
    operation = vnf.begin_change(package, "route-2.yaml", wait_timeout=5)
    assert "Gate.rules.example.com rules/never" in vnf.failure(operation)["detail"]
    vnf.roll_back(operation)
    crd = cluster.get("CustomResourceDefinition", ROUTES, api_version=CRDS)
    assert crd and {one["name"] for one in crd["spec"]["versions"] if one["served"]} == {"v1", "v2"}
    live = cluster.get("Route", "one", PLACE.name, f"{PLACE.group}/v2")
    assert live and live["spec"] == {"host": "a.example.org"}
    assert of_place(cluster, "Gate", "never") is None
    assert logged(f"CustomResourceDefinition.apiextensions.k8s.io {ROUTES} keeps v2, served")


def test_a_rollback_deletes_a_webhook_that_stops_even_the_inventory(vnf: Vnf, package: str, cluster: Cluster):
    vnf.instantiate("settings.yaml")
    operation = vnf.begin_change(package, "webhook.yaml", wait_timeout=5, parameters={"ID": vnf.id})
    vnf.failure(operation)
    assert cluster.get("ValidatingWebhookConfiguration", GUARD, api_version=ADMISSION)
    vnf.roll_back(operation)
    assert not cluster.get("ValidatingWebhookConfiguration", GUARD, api_version=ADMISSION)
    assert modes(cluster) == ["good", "good"]


def test_a_terminate_deletes_it_first_as_well(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("ignored.yaml", parameters={"ID": vnf.id})
    live = cluster.get("ValidatingWebhookConfiguration", GUARD, api_version=ADMISSION)
    assert live
    [one] = live["webhooks"]
    cluster.change("ValidatingWebhookConfiguration", GUARD, None, ADMISSION, webhooks=[{**one, "failurePolicy": "Fail"}])
    assert until(lambda: is_stopped(cluster, vnf.id), ENFORCED_WITHIN)
    vnf.terminate()
    assert cluster.leftovers([vnf.id]) == []


def is_stopped(cluster: Cluster, instance: str) -> bool:
    [inventory] = cluster.all("ConfigMap", selector=f"{INVENTORY}={instance}")
    metadata = inventory["metadata"]
    try:
        cluster.change("ConfigMap", metadata["name"], metadata["namespace"], metadata={"labels": {"colour": "blue"}})
    except ApiException as error:
        return "failed calling webhook" in str(error.reason)
    return False


def test_what_an_object_names_is_deleted_after_it(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("bucket.yaml")
    cluster.change("Bucket", "records", PLACE.name, PLACE.version, metadata={"finalizers": ["example.com/cloud"]})
    operation = vnf.begin_terminate()
    assert until(lambda: is_going(of_place(cluster, "Bucket", "records")), THERE_WITHIN)
    time.sleep(2)  # nothing happens: there is no event to wait for
    there = [of_place(cluster, "ProviderConfig", "cloud"), cluster.get("Secret", "credentials", PLACE.name)]
    assert all(there) and not any(map(is_going, there))
    cluster.release("Bucket", "records", PLACE.name, PLACE.version)
    vnf.wait(operation)
    assert cluster.get("Secret", "credentials", PLACE.name) is None


def is_going(live: Object | None) -> bool:
    return live is not None and "deletionTimestamp" in live["metadata"]


def test_a_scale_beyond_an_autoscaler_is_refused_with_its_bounds(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("web.yaml")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2}
    with cluster.holding(make("autoscaling/v2", "HorizontalPodAutoscaler", "web", PLACE.name, spec=spec)):
        operation = vnf.begin_scale("SCALE_OUT", "Web", 2)
        detail = vnf.failure(operation)["detail"]
        assert "cannot be 3" in detail and "HorizontalPodAutoscaler.autoscaling rules/web" in detail
        vnf.roll_back(operation)
        vnf.scale_out("Web")
    live = cluster.get("Deployment", "web", PLACE.name, "apps/v1")
    assert live and live["spec"]["replicas"] == 2


def test_warning_events_since_a_change_are_no_silence(vnf: Vnf, package: str, cluster: Cluster):
    """The controller of this kind writes no observedGeneration, and nothing at all once it has failed."""
    operation = vnf.begin_instantiate("addon.yaml")
    assert until(lambda: of_place(cluster, "Addon", "cloud"), THERE_WITHIN)
    cluster.set_status("Addon", "cloud", PLACE.name, PLACE.version, conditions=[condition()])
    vnf.wait(operation)
    operation = vnf.begin_change(package, "addon-2.yaml", wait_timeout=SILENCE)
    live = of_place(cluster, "Addon", "cloud")
    assert live
    assert until(lambda: is_changed(of_place(cluster, "Addon", "cloud")), THERE_WITHIN)
    cluster.create(warning(live))
    problem = vnf.failure(operation)
    assert "Addon.rules.example.com rules/cloud: Waiting (StatusOlderThanSpec): Install: cannot unpack" in problem["detail"]
    vnf.roll_back(operation)


def is_changed(live: Object | None) -> bool:
    return live is not None and live["spec"]["version"] == 2


def condition() -> Object:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"type": "Healthy", "status": "True", "reason": "Healthy", "message": "", "lastTransitionTime": now}


def warning(live: Object) -> Object:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    about = {"apiVersion": live["apiVersion"], "kind": live["kind"], "name": live["metadata"]["name"]}
    about |= {"namespace": PLACE.name, "uid": live["metadata"]["uid"]}
    said = {"type": "Warning", "reason": "Install", "message": "cannot unpack package: no such image", "count": 1}
    times = {"firstTimestamp": now, "lastTimestamp": now, "source": {"component": "packages"}}
    return make("v1", "Event", "addon.1", PLACE.name, involvedObject=about, **said, **times)


def test_hooks_of_helm_for_other_times_are_not_applied(vnf: Vnf, cluster: Cluster, logged: Logged):
    vnf.instantiate("hooks.yaml")
    lives = [name for name in ("plain", "cleanup", "try", "prepare") if cluster.get("ConfigMap", name, PLACE.name)]
    assert lives == ["plain", "prepare"]
    assert logged("helm.sh/hook")
