# SPDX-License-Identifier: Apache-2.0
"""What waits for what: structure, webhooks and controllers, the author's wishes; never in a cycle."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Iterable
from graphlib import TopologicalSorter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_cr_driver.capi.cluster import Cluster
from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects import backends, dependencies
from k8s_cr_driver.objects import edges as joined
from k8s_cr_driver.objects.dependencies import DEPENDS_ON, check, deletion, graph, rank, written_first
from k8s_cr_driver.objects.edges import Edges
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of

ADMISSION = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"


def obj(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    metadata = {"name": name, "annotations": {DEPENDS_ON: fields.pop("after")} if "after" in fields else {}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata | ({"namespace": namespace} if namespace else {}),
        **fields,
    }


def crd(kind: str, group: str = "example.com", service: str = "", namespace: str = "operator") -> Object:
    spec: dict[str, Any] = {"group": group, "names": {"kind": kind, "plural": kind.lower() + "s"}}
    if service:
        spec["conversion"] = {"webhook": {"clientConfig": {"service": {"name": service, "namespace": namespace}}}}
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{kind.lower()}s.{group}", spec=spec)


def deployment(name: str, namespace: str = "operator", account: str = "", **fields: Any) -> Object:
    pod: dict[str, Any] = {"containers": [{"name": name}]} | ({"serviceAccountName": account} if account else {})
    spec = {"template": {"metadata": {"labels": {"app": name, "tier": "x"}}, "spec": pod}}
    return obj("apps/v1", "Deployment", name, namespace, spec=spec, **fields)


def service(name: str, namespace: str = "operator") -> Object:
    return obj("v1", "Service", name, namespace, spec={"selector": {"app": name}})


def webhook(
    kind: str,
    backend: str,
    groups: Iterable[str] = ("example.com",),
    resources: Iterable[str] = ("*",),
    namespace: str = "operator",
) -> Object:
    rule = {"apiGroups": list(groups), "resources": list(resources)}
    one = {"clientConfig": {"service": {"name": backend, "namespace": namespace}}, "rules": [rule]}
    return obj(ADMISSION, f"{kind}WebhookConfiguration", backend, webhooks=[one])


def permissions(account: str, *groups: str, namespace: str = "operator", verbs: tuple[str, ...] = ("*",)) -> list[Object]:
    rules = [{"apiGroups": list(groups), "resources": ["*"], "verbs": list(verbs)}]
    return [
        obj("v1", "ServiceAccount", account, namespace),
        obj(RBAC, "ClusterRole", account, rules=rules),
        obj(
            RBAC,
            "ClusterRoleBinding",
            account,
            roleRef={"kind": "ClusterRole", "name": account},
            subjects=[{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        ),
    ]


TAB = obj("example.com/v1", "Tab", "one", "blue")
NAMESPACE = obj("v1", "Namespace", "blue")
OPERATOR = obj("v1", "Namespace", "operator")


def needed(edges: Edges, of: Object) -> set[str]:
    return {f"{key.kind} {key.name}" for key in edges[key_of(of)]}


def position(edges: Edges) -> dict[ObjectKey, int]:
    return {key: number for number, key in enumerate(TopologicalSorter(edges).static_order())}


def test_objects_wait_for_their_definition_and_their_namespace() -> None:
    edges = graph([TAB, NAMESPACE, crd("Tab")])
    assert needed(edges, TAB) == {"CustomResourceDefinition tabs.example.com", "Namespace blue"}
    assert needed(edges, NAMESPACE) == set()


def test_what_is_not_of_the_set_is_not_waited_for() -> None:
    assert graph([TAB]) == {key_of(TAB): set()}


def test_a_bare_pod_waits_for_what_admission_looks_up() -> None:
    spec = {"containers": [], "serviceAccountName": "runner", "priorityClassName": "high", "runtimeClassName": "kata"}
    pod = obj("v1", "Pod", "bare", "blue", spec=spec)
    others = [
        obj("v1", "ServiceAccount", "runner", "blue"),
        obj("v1", "ServiceAccount", "runner", "red"),
        obj("scheduling.k8s.io/v1", "PriorityClass", "high"),
        obj("node.k8s.io/v1", "RuntimeClass", "kata"),
    ]
    edges = graph([pod, *others])
    assert edges[key_of(pod)] == {key_of(others[0]), key_of(others[2]), key_of(others[3])}


def test_a_binding_waits_for_its_role() -> None:
    account, role, binding = permissions("operator", "example.com")
    assert graph([binding, role, account])[key_of(binding)] == {key_of(role)}


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
@pytest.mark.parametrize("resources", [["*"], ["*/*"], ["tabs"], ["others", "tabs", "tabs/status"]])
def test_custom_resources_wait_for_the_webhook_that_judges_them(kind: str, resources: list[str]) -> None:
    objects = [
        TAB,
        crd("Tab"),
        deployment("hook"),
        deployment("other"),
        service("hook"),
        webhook(kind, "hook", resources=resources),
    ]
    assert needed(graph(objects), TAB) >= {"Deployment hook", "Service hook", f"{kind}WebhookConfiguration hook"}
    assert "Deployment other" not in needed(graph(objects), TAB)


@pytest.mark.parametrize(
    ("groups", "resources"),
    [(["other.com"], ["*"]), (["example.com"], ["others"]), (["example.com"], ["tabs/status"]), (["*"], ["*"])],
)
def test_webhooks_for_something_else_or_for_everything_are_not_waited_for(groups: list[str], resources: list[str]) -> None:
    objects = [TAB, crd("Tab"), deployment("hook"), service("hook"), webhook("Mutating", "hook", groups, resources)]
    assert needed(graph(objects), TAB) == {"CustomResourceDefinition tabs.example.com"}


def test_plurals_of_kinds_that_the_cluster_has_are_guessed() -> None:
    policy = obj("example.com/v1", "Policy", "one", "blue")
    objects = [policy, deployment("hook"), service("hook"), webhook("Mutating", "hook", resources=["policies"])]
    assert "Deployment hook" in needed(graph(objects), policy)


def test_built_in_kinds_never_wait_for_webhooks() -> None:
    secret = obj("v1", "Secret", "for-hook", "operator")
    hook = deployment("hook")
    edges = graph([secret, hook, service("hook"), webhook("Validating", "hook", ["", "apps"], ["*"])])
    assert needed(edges, secret) == needed(edges, hook) == set()


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_a_webhook_configuration_waits_for_its_service_and_not_for_its_workload(kind: str) -> None:
    """It may judge its Service, and its workload may have to find it to become ready."""
    configuration = webhook(kind, "hook", ["*"], ["services"])
    edges = graph([configuration, deployment("hook"), service("hook"), service("other")])
    assert needed(edges, configuration) == {"Service hook"}


def test_custom_resources_wait_for_the_conversion_of_their_kind() -> None:
    objects = [TAB, crd("Tab", service="hook"), deployment("hook"), service("hook")]
    assert "Deployment hook" in needed(graph(objects), TAB)


def test_objects_of_an_aggregated_api_wait_for_its_server() -> None:
    reference = {"name": "api", "namespace": "operator"}
    api = obj("apiregistration.k8s.io/v1", "APIService", "v1.example.com", spec={"group": "example.com", "service": reference})
    edges = graph([TAB, api, service("api"), deployment("api")])
    assert needed(edges, TAB) == {"APIService v1.example.com", "Service api", "Deployment api"}


def test_the_author_may_name_what_an_object_depends_on() -> None:
    first, second = (
        deployment("first"),
        deployment("second", after="apps/namespaces/operator/Deployment/first, /Namespace/operator"),
    )
    objects = [second, first, OPERATOR]
    check(objects)
    assert needed(graph(objects), second) == {"Deployment first", "Namespace operator"}


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ("apps/namespaces/operator/Deployment/frist", "Deployment.apps operator/second: .* did you mean apps/.*/first?"),
        ("batch/namespaces/red/Job/x", "names batch/namespaces/red/Job/x, which is not in the package; add it"),
        ("Deployment/first", "holds 'Deployment/first'; write group/namespaces/namespace/kind/name"),
        ("apps/namespace/operator/Deployment/first", "write group/namespaces"),
    ],
)
def test_references_to_nothing_are_refused_for_a_whole_package(after: str, words: str) -> None:
    with pytest.raises(InvalidPackage, match=words):
        check([deployment("first"), deployment("second", after=after)])


def test_the_references_of_a_package_are_limited_before_any_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "REFERENCES", 3)
    two = ",".join(["apps/namespaces/operator/Deployment/a"] * 2)
    objects = [deployment("a"), deployment("b", after=two), deployment("c", after=two.split(",")[0])]
    check(objects)
    monkeypatch.setattr(dependencies, "depends_on", None)
    words = r"Deployment\.apps operator/d: annotation config\S+: the package has more than 3 references; leave some out"
    with pytest.raises(InvalidPackage, match=words):
        check([*objects, deployment("d", after=two)])


def test_more_references_of_live_objects_than_a_package_may_have_are_ignored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may write an object of the instance, as one of its Pods, can annotate it."""
    monkeypatch.setattr(dependencies, "REFERENCES", 3)
    second, third = (f"apps/namespaces/operator/Deployment/{name}" for name in ("b", "c"))
    objects = [deployment("b", after=third), deployment("a", after=",".join([second] * 4)), deployment("c")]
    edges = deletion(objects)
    assert [needed(edges, one) for one in objects] == [set(), set(), {"Deployment b"}]
    assert f"References in annotations {DEPENDS_ON}: the set has more than 3 pairs" in caplog.text


def test_an_object_with_too_many_references_takes_none_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "REFERENCES", 3)
    second = "apps/namespaces/operator/Deployment/b"
    objects = [deployment("hostile", after="," * 4), deployment("a", after=second), deployment("b")]
    assert needed(deletion(objects), objects[2]) == {"Deployment a"}


def test_more_references_in_specs_than_are_compared_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MOST", 3)
    named = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name} for name in ("a", "b", "c")]
    targets = [obj("v1", "ConfigMap", name, "blue") for name in ("a", "b", "c")]
    referring = [obj("example.com/v1", "Tab", name, "blue", spec={"all": named}) for name in ("first", "second")]
    edges = deletion([*referring, *targets])
    assert [needed(edges, one) for one in targets] == [{"Tab first"}] * 3


def test_references_of_live_objects_to_nothing_take_no_memory() -> None:
    objects = [deployment(f"a-{number}", after=",".join(f"/k/{name}" for name in range(9_000))) for number in range(8)]
    tracemalloc.start()
    deletion(objects)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * 2**20


def test_a_part_of_a_package_ignores_references_to_the_rest() -> None:
    alone = deployment("second", after="apps/namespaces/operator/Deployment/first")
    assert graph([alone]) == {key_of(alone): set()}


def test_a_cycle_of_the_authors_is_refused_and_printed() -> None:
    objects = [
        deployment("a", after="apps/namespaces/operator/Deployment/b"),
        deployment("b", after="apps/namespaces/operator/Deployment/a"),
    ]
    with pytest.raises(InvalidPackage, match=r"in a cycle: (.*/(a|b)) needs .*/(a|b) needs \1; remove one reference"):
        graph(objects)
    assert set(deletion(objects)) == {key_of(one) for one in objects}


def test_a_guess_that_closes_a_cycle_is_dropped_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    needs_tab = deployment("hook", after="example.com/namespaces/blue/Tab/one")
    objects = [TAB, crd("Tab"), needs_tab, service("hook"), webhook("Validating", "hook")]
    with caplog.at_level(logging.DEBUG):
        edges = graph(objects)
    assert needed(edges, needs_tab) == {"Tab one"}
    assert "Deployment hook" not in needed(edges, TAB)
    assert "Tab.example.com does not wait for Deployment.apps operator/hook" in caplog.text


def management_cluster() -> list[Object]:
    """As Cluster API is installed: certificates for its webhooks from cert-manager, which has webhooks of its own."""
    certificate = obj("cert-manager.io/v1", "Certificate", "serving", "capi")
    return [
        certificate,
        obj("cluster.x-k8s.io/v1", "Cluster", "blue", "default"),
        *[obj("v1", "Namespace", name) for name in ("cert-manager", "capi")],
        crd("Certificate", "cert-manager.io"),
        crd("Cluster", "cluster.x-k8s.io", service="capi", namespace="capi"),
        deployment("hook", "cert-manager"),
        deployment("cert-manager", "cert-manager", account="cert-manager"),
        *permissions("cert-manager", "cert-manager.io", namespace="cert-manager"),
        service("hook", "cert-manager"),
        webhook("Mutating", "hook", ["cert-manager.io"], ["*/*"], "cert-manager"),
        webhook("Validating", "hook", ["cert-manager.io"], ["*/*"], "cert-manager"),
        deployment("capi", "capi", account="manager"),
        *permissions("manager", "cluster.x-k8s.io", namespace="capi"),
        service("capi", "capi"),
        webhook("Mutating", "capi", ["cluster.x-k8s.io"], ["clusters"], "capi"),
        webhook("Validating", "capi", ["cluster.x-k8s.io"], ["clusters"], "capi"),
    ]


def test_cluster_api_and_cert_manager_wait_for_each_other_in_no_cycle() -> None:
    edges = graph(management_cluster())
    by_name = {f"{key.kind} {key.name}": key for key in edges}
    place = position(edges)
    assert edges[by_name["Deployment capi"]] == {by_name["Namespace capi"]}
    assert by_name["Deployment hook"] in edges[by_name["Certificate serving"]]
    assert by_name["Deployment capi"] in edges[by_name["Cluster blue"]]
    assert place[by_name["Deployment hook"]] < place[by_name["Certificate serving"]]


def test_custom_resources_go_before_the_controllers_that_take_their_finalizers_off() -> None:
    edges = deletion(management_cluster())
    by_name = {f"{key.kind} {key.name}": key for key in edges}
    place = position(edges)
    for earlier, later in [
        ("Cluster blue", "CustomResourceDefinition clusters.cluster.x-k8s.io"),
        ("CustomResourceDefinition clusters.cluster.x-k8s.io", "Deployment capi"),
        ("Cluster blue", "MutatingWebhookConfiguration capi"),
        ("MutatingWebhookConfiguration capi", "Deployment capi"),
        ("ValidatingWebhookConfiguration capi", "Service capi"),
        ("Deployment capi", "ServiceAccount manager"),
        ("Deployment capi", "ClusterRoleBinding manager"),
        ("ClusterRoleBinding manager", "ClusterRole manager"),
        ("Deployment capi", "Namespace capi"),
        ("Certificate serving", "Deployment cert-manager"),
    ]:
        assert place[by_name[earlier]] < place[by_name[later]], (earlier, later)


def test_controllers_keep_their_settings_and_other_workloads_go_at_once() -> None:
    settings = obj("v1", "ConfigMap", "settings", "operator")
    controller, app = deployment("controller", account="runner"), deployment("app", "blue", account="app")
    edges = deletion(
        [
            TAB,
            crd("Tab"),
            controller,
            app,
            settings,
            *permissions("runner", "example.com"),
            obj("v1", "ServiceAccount", "app", "blue"),
        ]
    )
    assert needed(edges, controller) == {"Tab one", "CustomResourceDefinition tabs.example.com"}
    assert needed(edges, settings) == {"Deployment controller"}
    assert needed(edges, app) == set()


def test_permissions_to_read_make_no_controller() -> None:
    controller = deployment("viewer", account="runner")
    edges = deletion([TAB, controller, *permissions("runner", "example.com", verbs=("get", "list", "watch"))])
    assert needed(edges, controller) == set()


def test_aggregated_roles_and_cluster_admin_make_controllers() -> None:
    account, role, binding = permissions("runner", "example.com")
    role["metadata"]["labels"] = {"aggregate": "yes"}
    total = obj(RBAC, "ClusterRole", "total", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"aggregate": "yes"}}]})
    binding["roleRef"]["name"] = "total"
    controller = deployment("controller", account="runner")
    assert needed(deletion([TAB, controller, account, role, total, binding]), controller) == {"Tab one"}
    binding["roleRef"]["name"] = "cluster-admin"
    assert needed(deletion([TAB, controller, account, binding]), controller) == {"Tab one"}


def test_an_aggregated_role_goes_before_those_that_it_selects() -> None:
    def role(name: str, labels: dict[str, str], **rest: Any) -> Object:
        made = obj(RBAC, "ClusterRole", name, **rest)
        made["metadata"]["labels"] = labels
        return made

    selects = {"clusterRoleSelectors": [{"matchLabels": {"into": "total"}}, {"matchLabels": {"into": "more"}}]}
    total = role("total", {"into": "total"}, aggregationRule=selects)  # itself, too
    one, two, other = role("one", {"into": "total"}), role("two", {"into": "more", "a": "b"}), role("other", {"into": "it"})
    edges = deletion([one, two, other, total])
    assert [needed(edges, obj) for obj in (one, two, other, total)] == [{"ClusterRole total"}] * 2 + [set()] * 2
    objects = [total, one, two, other]
    assert needed(written_first(objects, graph(objects)), total) == {"ClusterRole one", "ClusterRole two"}


def test_deletion_reverses_what_the_author_named_and_has_the_pairs_of_the_hook() -> None:
    first, second = deployment("first"), deployment("second", after="apps/namespaces/operator/Deployment/first, nonsense")
    secret = obj("v1", "Secret", "kept", "red")
    edges = deletion(
        [first, second, secret], pairs=[(key_of(first), key_of(secret)), (ObjectKey("", "Pod", "x", "gone"), key_of(first))]
    )
    assert (needed(edges, first), needed(edges, secret)) == ({"Deployment second"}, {"Deployment first"})


WORKLOAD = deployment("ref", "blue")


def reference(**fields: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": "ref", **fields}


@pytest.mark.parametrize(
    "spec",
    [
        {"workloadRef": reference()},
        {"workloadRef": reference(apiVersion="apps/v1beta2", fieldPath="spec")},
        {"workloadRef": {"kind": "Deployment", "name": "ref"}},
        {"parts": [{"template": {"spec": {"scaleTargetRef": reference(namespace="blue")}}}]},
        {"mode": "a", "targets": [[reference(name="another"), reference()]]},
    ],
)
def test_what_refers_to_an_object_is_deleted_before_it(spec: Object) -> None:
    one = obj("example.com/v1", "Tab", "one", "blue", spec=spec)
    assert needed(deletion([WORKLOAD, one]), WORKLOAD) == {"Tab one"}
    assert needed(deletion([WORKLOAD, one]), one) == set()
    assert needed(graph([WORKLOAD, one]), one) == needed(graph([WORKLOAD, one]), WORKLOAD) == set()


@pytest.mark.parametrize(
    "spec",
    [
        None,
        ["workloadRef"],
        {"workloadRef": {"kind": "StatefulSet", "name": "ref"}},
        {"workloadRef": reference(namespace="red")},
        {"workloadRef": reference(apiVersion="v1")},
        {"workloadRef": {**reference(), "name": ["ref"]}},
        {"workload": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "ref"}}},
    ],
)
def test_what_names_another_object_or_none_is_not_waited_for(spec: object) -> None:
    one = obj("example.com/v1", "Tab", "one", "blue", spec=spec)
    assert needed(deletion([WORKLOAD, one]), WORKLOAD) == set()


def test_an_object_of_the_cluster_may_be_referred_to_from_a_namespace() -> None:
    template = obj("example.com/v1", "Template", "all", spec={"templateRef": {}})
    one = obj("example.com/v1", "Tab", "one", "blue")
    one["spec"] = {"templateRef": {"apiVersion": "example.com/v1", "kind": "Template", "name": "all"}}
    assert needed(deletion([template, one]), template) == {"Tab one"}


def test_what_is_bound_by_an_object_of_the_cluster_does_not_wait_for_it() -> None:
    """The finalizer kubernetes.io/pv-protection holds the volume as long as its claim exists."""
    claim = obj("v1", "PersistentVolumeClaim", "data", "blue")
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "data", "namespace": "blue"}
    volume = obj("v1", "PersistentVolume", "disk", spec={"claimRef": reference})
    assert needed(deletion([claim, volume]), claim) == set()


def test_nothing_waits_because_of_a_reference_of_or_to_what_is_only_released() -> None:
    one = obj("example.com/v1", "Tab", "one", "blue", spec={"workloadRef": reference()})
    for stays in (one, WORKLOAD):
        assert not any(deletion([WORKLOAD, one], stay=[key_of(stays)]).values())


def test_objects_that_refer_to_each_other_are_deleted_at_once_unless_the_author_says_which_is_first() -> None:
    there, back = ({"apiVersion": "example.com/v1", "kind": kind, "name": "one"} for kind in ("Tab", "Claim"))
    claim = obj("example.com/v1", "Claim", "one", "blue", spec={"resourceRef": there})
    tab = obj("example.com/v1", "Tab", "one", "blue", spec={"boundRef": back})
    assert not any(deletion([claim, tab]).values())
    tab = obj("example.com/v1", "Tab", "one", "blue", spec={"boundRef": back}, after="example.com/namespaces/blue/Claim/one")
    assert needed(deletion([claim, tab]), claim) == {"Tab one"}


def test_the_autoscaler_of_a_controller_is_deleted_before_it() -> None:
    """It would wait for the controller as other objects in the namespace do that the controller may need."""
    controller = deployment("app", account="runner")
    scaler = obj("autoscaling/v2", "HorizontalPodAutoscaler", "app", "operator")
    scaler["spec"] = {"scaleTargetRef": reference(name="app")}
    edges = deletion([TAB, controller, scaler, *permissions("runner", "example.com")])
    assert (needed(edges, controller), needed(edges, scaler)) == ({"Tab one", "HorizontalPodAutoscaler app"}, set())


def test_a_cluster_goes_before_its_machines_and_these_before_their_templates() -> None:
    api_version, where = "infrastructure.cluster.x-k8s.io/v1beta1", "blue"
    names = ("OpenStackCluster", "OpenStackMachineTemplate")
    infra, template = (obj(api_version, kind, "one", where, spec={"template": {}}) for kind in names)
    to_template = {"infrastructureRef": {"apiVersion": api_version, "kind": names[1], "name": "one"}}
    plane = obj("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane", "one", where)
    plane["spec"] = {"machineTemplate": to_template}
    cluster = obj("cluster.x-k8s.io/v1beta1", "Cluster", "one", where)
    to_plane = {"apiVersion": plane["apiVersion"], "kind": plane["kind"], "name": "one"}
    to_infra = {"apiVersion": api_version, "kind": names[0], "name": "one", "namespace": where}
    cluster["spec"] = {"controlPlaneRef": to_plane, "infrastructureRef": to_infra}
    pool = obj("cluster.x-k8s.io/v1beta1", "MachineDeployment", "one", where)
    pool["spec"] = {"clusterName": "one", "template": {"spec": to_template}}
    objects = [infra, template, plane, pool, cluster]
    pairs = [(key_of(cluster), later) for later in Cluster(cluster).relations().deleted_before(objects)]
    edges = deletion(objects, pairs)
    assert [needed(edges, one) for one in (cluster, infra, plane, pool)] == [set(), *[{"Cluster one"}] * 3]
    assert needed(edges, template) == {"Cluster one", "KubeadmControlPlane one", "MachineDeployment one"}


def test_references_in_deep_and_long_specs_are_found() -> None:
    deep: Object = {"workloadRef": reference()}
    for _ in range(5000):
        deep = {"a": [deep]}
    one = obj("example.com/v1", "Tab", "one", "blue", spec={"deep": deep, "long": [reference(name="other")] * 5000})
    assert needed(deletion([WORKLOAD, one]), WORKLOAD) == {"Tab one"}


def test_ranks_put_foundations_first_and_webhooks_last() -> None:
    kinds = [
        GroupKind("", "Namespace"),
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
        GroupKind("", "ServiceAccount"),
        GroupKind("", "Service"),
        GroupKind("apps", "Deployment"),
        GroupKind("networking.k8s.io", "Ingress"),
        GroupKind("example.com", "Tab"),
        GroupKind("apiregistration.k8s.io", "APIService"),
        GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ]
    assert sorted(set(kinds), key=rank) == kinds


def test_many_objects_have_few_edges() -> None:
    tabs = [obj("example.com/v1", "Tab", f"tab-{number}", "blue") for number in range(2000)]
    workloads = [deployment(f"app-{number}", account="runner" if number < 3 else "") for number in range(2000)]
    objects = [
        NAMESPACE,
        OPERATOR,
        crd("Tab"),
        service("app-0"),
        webhook("Mutating", "app-0"),
        *tabs,
        *workloads,
        *permissions("runner", "example.com"),
    ]
    for edges in (graph(objects), deletion(objects)):
        assert sum(map(len, edges.values())) < 6 * len(objects)


def many(what: str, count: int) -> list[Object]:
    """A set in which `count` objects may have to wait for `count` others each."""
    tabs = [obj("example.com/v1", "Tab", f"tab-{number}", "blue") for number in range(count)]
    apps = [deployment("app", account="runner") for _ in range(count)]
    for number, app in enumerate(apps):
        app["metadata"]["name"] = f"app-{number}"
    names = [f"hook-{number}" for number in range(count)]
    services = [obj("v1", "Service", name, "operator", spec={"selector": {"app": "app"}}) for name in names]
    selected = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    roles = [obj(RBAC, "ClusterRole", name, aggregationRule=selected) for name in names]
    for role in roles:
        role["metadata"]["labels"] = {"a": "b"}
    api_services = [
        obj("apiregistration.k8s.io/v1", "APIService", name, spec={"service": {"name": name, "namespace": "operator"}})
        for name in names
    ]
    return {
        "custom resources of controllers": [*tabs, *apps, *permissions("runner", "example.com")],
        "settings of controllers": [
            *apps,
            *permissions("runner", "example.com"),
            *(obj("v1", "ConfigMap", name, "operator") for name in names),
        ],
        "webhooks of custom resources": [*tabs, *services, *(webhook("Mutating", name) for name in names)],
        "workloads of services": [*apps, *services, *api_services],
        "roles of a role": [*apps, *roles, *permissions("runner", "example.com")],
    }[what]


@pytest.mark.parametrize(
    "what",
    [
        "custom resources of controllers",
        "settings of controllers",
        "webhooks of custom resources",
        "workloads of services",
        "roles of a role",
    ],
)
def test_guesses_of_a_large_set_are_limited(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    objects = many(what, 30)
    whole = sum(map(len, deletion(objects).values()))
    monkeypatch.setattr(backends, "MOST", 200)
    for edges in (graph(objects), deletion(objects)):
        assert sum(map(len, edges.values())) < 800
    assert whole > 900 or what == "roles of a role"
    assert "the set has more than 200 pairs" in caplog.text


def test_a_role_of_many_groups_for_many_accounts_costs_little() -> None:
    """Each of them less than a MiB, as etcd takes them."""
    controller, (account, role, binding) = deployment("controller", account="runner"), permissions("runner", "example.com")
    role["rules"].append({"apiGroups": [f"g{number}.example.com" for number in range(20_000)], "verbs": ["*"]})
    binding["subjects"] += [{"kind": "ServiceAccount", "name": f"a-{number}", "namespace": "a"} for number in range(500)]
    tracemalloc.start()
    edges = deletion([TAB, controller, account, role, binding])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert needed(edges, controller) == {"Tab one"}
    assert peak < 50 * 2**20


def test_accounts_of_the_same_roles_have_their_groups_once() -> None:
    account, role, binding = permissions("runner", "example.com", "other.example.com")
    workloads = [deployment(name, account="runner") for name in ("a", "b")]
    one, other = backends.controllers([*workloads, account, role, binding], {"example.com"})
    assert one.groups is other.groups
    assert one.groups == {"example.com", ""}


def test_any_number_of_cycles_is_found_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each controller of `Tab` goes after all of these, and before the one that it depends on."""
    passes: list[Edges] = []
    find = joined._strong_components
    monkeypatch.setattr(joined, "_strong_components", lambda edges: passes.append(edges) or find(edges))
    tabs = [obj("example.com/v1", "Tab", f"tab-{number}", "blue") for number in range(40)]
    references = [f"example.com/namespaces/blue/Tab/tab-{number}" for number in range(40)]
    workloads = [deployment(f"app-{number}", account="runner", after=after) for number, after in enumerate(references)]
    edges = deletion([*tabs, *workloads, *permissions("runner", "example.com")])
    assert [needed(edges, one) for one in tabs] == [{f"Deployment app-{number}"} for number in range(40)]
    assert all(needed(edges, one) == set() for one in workloads)
    assert len(passes) == 6, "one for each layer that adds edges"


NAMES = st.sampled_from(["a", "b"])
REFERENCES = st.sampled_from(
    ["", "example.com/namespaces/a/Tab/a", "apps/namespaces/a/Deployment/a", "/namespaces/b/Service/a", "/Namespace/a"]
)
OBJECTS = st.lists(
    st.one_of(
        st.builds(lambda name: obj("v1", "Namespace", name), NAMES),
        st.builds(lambda kind, name: crd(kind, service=name, namespace="a"), st.sampled_from(["Tab", "Tub"]), NAMES),
        st.builds(lambda name, where, after: obj("example.com/v1", "Tab", name, where, after=after), NAMES, NAMES, REFERENCES),
        st.builds(lambda name, where, after: deployment(name, where, account=name, after=after), NAMES, NAMES, REFERENCES),
        st.builds(service, NAMES, NAMES),
        st.builds(lambda name, where: webhook("Mutating", name, namespace=where), NAMES, NAMES),
    )
    | st.builds(lambda name, where: permissions(name, "example.com", "", namespace=where)[2], NAMES, NAMES),
    max_size=20,
    unique_by=key_of,
)


@given(OBJECTS)
def test_no_set_of_objects_gives_a_cycle(objects: list[Object]) -> None:
    keys = {key_of(one) for one in objects}
    results = [deletion(objects, pairs=[(first, later) for first in keys for later in keys if first.name != later.name])]
    try:
        results.append(graph(objects))
    except InvalidPackage as error:
        assert "in a cycle" in str(error)
    for edges in results:
        assert set(edges) == keys == set(TopologicalSorter(edges).static_order())


def test_the_autoscaler_of_a_custom_resource_does_not_let_its_controller_go_first() -> None:
    """It is a setting in the namespace of the controller, too, and goes before what it scales."""
    controller, tab = deployment("app", account="runner"), obj("example.com/v1", "Tab", "one", "operator")
    scaler = obj("autoscaling/v2", "HorizontalPodAutoscaler", "tab", "operator")
    scaler["spec"] = {"scaleTargetRef": {"apiVersion": "example.com/v1", "kind": "Tab", "name": "one"}}
    edges = deletion([tab, crd("Tab"), controller, scaler, *permissions("runner", "example.com")])
    assert "Tab one" in needed(edges, controller)
    assert needed(edges, tab) == {"HorizontalPodAutoscaler tab"}
