# SPDX-License-Identifier: Apache-2.0
"""Bad manifests are refused with one error that names file, document, object, field and remedy."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import GroupKind
from k8s_cr_driver.package.files import SIZE_LIMIT
from k8s_cr_driver.package.manifests import load, place

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tabs.example.com}
spec:
  group: example.com
  names: {kind: Tab, plural: tabs}
  scope: SCOPE
  versions: [{name: v1, served: true, storage: true}]
"""
TAB = "apiVersion: example.com/v1\nkind: Tab\nmetadata: {name: one, namespace: blue}\n"


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    def loaded(*texts: str | bytes, **options: Any) -> list[dict[str, Any]]:
        names = [f"{number}.yaml" for number in range(1, len(texts) + 1)]
        for name, text in zip(names, texts, strict=True):
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return load(tmp_path, names, **options)

    return loaded


def scope(kind: GroupKind, version: str) -> bool | None:
    return {"ConfigMap": True, "Secret": True, "Deployment": True, "Namespace": False}.get(kind.kind)


def pod(spec: str) -> str:
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: blue}}\nspec: {{template: {{spec: {spec}}}}}"
    )


def test_reviews_need_no_name_and_are_distinguished_by_what_they_ask(package: Callable[..., list[dict[str, Any]]]) -> None:
    review = "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectRulesReview\nspec: {namespace: %s}\n"
    first, second = package(review % "blue" + "---\n" + review % "red")
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["name"] == package(review % "blue")[0]["metadata"]["name"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a: \xff\n", "1.yaml, line 1: is not UTF-8"),
        ("a: [", "1.yaml, document 1, line 2: did not find expected node content"),
        (CONFIG + "---\n" + CONFIG + "data: {a: x, a: y}", "1.yaml, document 2, line 8: the key 'a' is given twice"),
        ("just text", "1.yaml, document 1: is no object; a manifest is a mapping"),
        ("- " + CONFIG.replace("\n", "\n  "), "a list; write each object as a document of its own"),
        ("kind: ConfigMap\nmetadata: {name: x}", "document 1: apiVersion: is missing"),
        ("apiVersion: a/b/c\nkind: X\nmetadata: {name: x}", "apiVersion: is missing or no API version"),
        ("apiVersion: v1\nmetadata: {name: x}", "kind: is missing"),
        ("apiVersion: v1\nkind: ConfigMap", "metadata: is missing in this ConfigMap"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "metadata.name: is missing in this ConfigMap"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 5}",
            "metadata.name: is missing in this ConfigMap, or no name",
        ),
        (f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {'x' * 254}}}", "at most 253 characters"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a/b}", "without /, % and control characters"),
        ('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "a\\e[2J"}', "without /, % and control characters"),
        ('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "a\\u202eb"}', "without /, % and control characters"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}", "metadata.generateName: .* could not find"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Upper}", "metadata.name: Upper is no name of a ConfigMap"),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a_b}", "metadata.name: a_b is no name of a Deployment"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: a.}", "metadata.name: a. is no name of a Service"),
        (CONFIG.replace("one", "one, namespace: Blue_1"), "metadata.namespace: of ConfigMap one is not a DNS label"),
        (
            CONFIG + "data: {port: 80}",
            "ConfigMap one: data.port: is an integer, must be text; write the value in quotes",
        ),
        (CONFIG.replace("one", "one, labels: {on: x, a: yes}"), "'on' is not text"),
        (CONFIG.replace("one", "one, labels: {a: yes}"), "metadata.labels.a: is a boolean, must be text"),
        (CONFIG.replace("one", "one, annotations: [a]"), "metadata.annotations: must be a mapping"),
        (
            CONFIG.replace("one", "one, annotations: {k8s-cr-driver/ready-when: Stored}"),
            "metadata.annotations.k8s-cr-driver/ready-when: must be stored or a rule: 'Stored': write condition=",
        ),
        (
            CONFIG.replace("one", "one, annotations: {k8s-cr-driver/ready-when: 'cel: status.phase =='}"),
            "k8s-cr-driver/ready-when: must be stored or a rule: 'cel: status.phase ==': column 21: a value is expected",
        ),
        (
            CONFIG.replace("one", "one, annotations: {k8s-cr-driver/no-activity-timeout: '5m'}"),
            "k8s-cr-driver/no-activity-timeout: must be seconds, from 60 to 604800",
        ),
        (
            CONFIG.replace("one", "one, annotations: {k8s-cr-driver/failed-when: stored}"),
            "k8s-cr-driver/failed-when: must be a rule: 'stored': write condition=",
        ),
        (
            CONFIG.replace("one", "one, annotations: {k8s-cr-driver/suspended-when: 'jsonpath={.a..b}'}"),
            "k8s-cr-driver/suspended-when: must be a rule: 'jsonpath={.a..b}': column 13",
        ),
        (
            CONFIG.replace("one", "one, annotations: {k8s-cr-driver/ignore-generation: 'yes'}"),
            "k8s-cr-driver/ignore-generation: must be true or false",
        ),
        (
            CONFIG.replace("one", 'one, annotations: {k8s-cr-driver/replace: "yes"}'),
            "k8s-cr-driver/replace: must be true or false",
        ),
        (
            CONFIG.replace("one", 'one, annotations: {k8s-cr-driver/keep: "yes"}'),
            "k8s-cr-driver/keep: must be true or false",
        ),
        ("apiVersion: v1\nkind: List", "document 1: items: is null, must be a list of objects"),
        (pod("{containers: [{name: a}, {name: a}]}"), "Deployment blue/web: .*containers.1.: .* has the same name;"),
        (
            pod("{containers: [{name: a, env: [{name: X}, {name: Y}, {name: X}]}]}"),
            r"containers\[0\].env\[2\]: .*the same name;",
        ),
        (
            pod("{containers: [{name: a, ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]}]}"),
            r"containers\[0\].ports\[1\]: .*the same containerPort, protocol;",
        ),
        (pod("{containers: [], volumes: [{name: v}, {name: v}]}"), r"volumes\[1\]"),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1}, {port: 1}]}",
            r"Service s: spec.ports\[1\]",
        ),
        ("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1}]", r"document 1, items\[0\]: kind: is missing"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: 'hunter two'}", "data.a: is not base64"),
    ],
)
def test_bad_documents_are_refused(package: Any, text: str | bytes, words: str) -> None:
    with pytest.raises(InvalidPackage, match=words) as caught:
        package(text)
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [
        ("v1", "ConfigMap", "kube-root-ca.crt"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "system:Node_reader"),
        ("apiregistration.k8s.io/v1", "APIService", "v1."),
        ("networking.k8s.io/v1", "IPAddress", "2001:db8::1"),
        ("policy/v1", "PodDisruptionBudget", "Upper"),
        ("example.com/v1", "Anything", "Upper"),
    ],
)
def test_a_name_that_the_server_takes_is_taken(package: Any, api_version: str, kind: str, name: str) -> None:
    (found,) = package(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: '{name}'}}")
    assert found["metadata"]["name"] == name


def test_the_same_keys_are_fine_where_lists_have_no_merge_key(package: Any) -> None:
    (deployment,) = package(
        pod(
            "{containers: [{name: a, args: [x, x], ports: [{containerPort: 1}, {containerPort: 1, protocol: UDP}]}],"
            " tolerations: [{key: k}, {key: k}]}"
        )
    )
    assert deployment["kind"] == "Deployment"


def test_lists_of_custom_resources_are_not_judged_by_their_names(package: Any) -> None:
    assert package(TAB + "containers: [{name: a}, {name: a}]\n")


def test_one_object_written_twice_is_refused_with_both_places(package: Any) -> None:
    with pytest.raises(InvalidPackage, match=r"ConfigMap one is written twice: 1.yaml, document 1 and 2.yaml, document 2"):
        package(CONFIG, CONFIG.replace("one", "two") + "---\n" + CONFIG)


def test_lists_are_flattened_and_their_entries_get_the_kind_of_a_typed_list(package: Any) -> None:
    typed = "apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: a}}, {metadata: {name: b}}]"
    mixed = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [{"kind": "Tab", "apiVersion": "e.x/v1", "metadata": {"name": "c"}}],
        }
    )
    names = [(obj["apiVersion"], obj["kind"], obj["metadata"]["name"]) for obj in package(typed, mixed)]
    assert names == [("v1", "ConfigMap", "a"), ("v1", "ConfigMap", "b"), ("e.x/v1", "Tab", "c")]


def test_a_custom_resource_whose_kind_ends_in_list_is_no_list(package: Any) -> None:
    (obj,) = package("apiVersion: e.x/v1\nkind: AccessList\nmetadata: {name: a}\nspec: {items: []}")
    assert obj["kind"] == "AccessList"


def test_what_only_a_server_writes_is_dropped(package: Any) -> None:
    (obj,) = package(
        "apiVersion: v1\nkind: ConfigMap\nstatus: {x: 1}\nmetadata: {name: one, uid: u, resourceVersion: '5', generation: 1,"
        " creationTimestamp: null, managedFields: [], annotations: {kubectl.kubernetes.io/last-applied-configuration: x, a: b}}"
    )
    assert obj == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "annotations": {"a": "b"}}}


def test_the_rules_of_an_aggregated_role_are_left_to_their_controller(package: Any) -> None:
    text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules: []\n"
    (role,) = package(text + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}")
    assert "rules" not in role
    assert package(text)[0]["rules"] == []


@pytest.mark.parametrize("tag", ["!", "!!"])
def test_a_password_that_looks_like_a_tag_is_not_shown(package: Any, tag: str) -> None:
    with pytest.raises(InvalidPackage, match="line 5: a tag of YAML") as raised:
        package(f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData:\n  a: {tag}hunter2")
    assert "hunter2" not in str(raised.value)


def test_string_data_of_a_secret_becomes_data(package: Any) -> None:
    (secret,) = package("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: YQ==, b: Yg==}\nstringData: {b: new}")
    assert "stringData" not in secret
    assert {key: base64.b64decode(value) for key, value in secret["data"].items()} == {"a": b"a", "b": b"new"}


def test_parameters_are_filled_in_before_the_checks(package: Any) -> None:
    def fill(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "metadata": {"name": "filled"}}

    assert [obj["metadata"]["name"] for obj in package(CONFIG, fill=fill)] == ["filled"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.yaml", "no such file"),
        ("folder", "no such file"),
        ("../outside.yaml", "leads out of the package"),
        ("/etc/hostname", "leads out of the package"),
        ("link.yaml", "leads out of the package"),
        ("file:///etc/hostname", "only paths inside the package"),
        ("file:1.yaml", "only paths inside the package"),
        ("FTP://host/x", "only paths inside the package"),
        ("http://user:hunter2@host/x?token=hunter3", "allowed only by https"),
        ("HTTPS://host/x?token=hunter2", "not read here"),
        ("a\0b", "is not a path"),
        ("x" * 5000, "cannot be read"),
    ],
)
def test_only_files_of_the_package_are_read(tmp_path: Path, name: str, words: str) -> None:
    root = tmp_path / "package"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text(CONFIG)
    (root / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    with pytest.raises(InvalidPackage, match=words) as caught:
        load(root, [name])
    assert "hunter" not in str(caught.value)


def test_links_within_the_package_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(CONFIG)
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    assert len(load(tmp_path, ["link.yaml"])) == 1


def test_no_files_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidPackage, match="lcm-kubernetes-def-files names no file"):
        load(tmp_path, [])


def test_large_files_are_refused_alone_and_together(package: Any) -> None:
    with pytest.raises(InvalidPackage, match=r"1.yaml: is larger than 32 MiB"):
        package(b"#" * (SIZE_LIMIT + 1))
    half = CONFIG + "#" * (SIZE_LIMIT // 2)
    with pytest.raises(InvalidPackage, match=r"2.yaml: the manifests are larger than 32 MiB together"):
        package(half, half)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("https://user:hunter2@host/x?token=hunter3", r"^https://host/x: credentials in a URL of lcm-kubernetes-def-files"),
        ("https://hunter2@host/x", "^https://host/x: credentials"),
        ("http://[hunter2/x", "lcm-kubernetes-def-files: an entry with :// is no URL"),
    ],
)
def test_urls_with_credentials_are_refused_for_they_are_stored(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as caught:
        load(tmp_path, [name])
    assert "hunter" not in str(caught.value)


def test_objects_keep_their_namespace_or_get_the_default(package: Any) -> None:
    objects = package(
        CONFIG,
        CONFIG.replace("one", "two, namespace: red"),
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: red, namespace: x}",
    )
    place(objects, scope, "blue")
    assert [obj["metadata"].get("namespace") for obj in objects] == ["blue", "red", None]


def test_a_packages_own_definition_says_the_scope_and_nobody_is_asked(package: Any) -> None:
    def asked(kind: GroupKind, version: str) -> bool | None:
        assert kind.kind == "CustomResourceDefinition"
        return False

    objects = package(TAB, CRD.replace("SCOPE", "Cluster"))
    place(objects, asked)
    assert "namespace" not in objects[0]["metadata"]
    objects = package(TAB.replace(", namespace: blue", ""), CRD.replace("SCOPE", "Namespaced"))
    place(objects, asked, "red")
    assert objects[0]["metadata"]["namespace"] == "red"
    assert list(crds_of(objects)) == [GroupKind("example.com", "Tab")]


def test_unknown_kinds_are_named_all_at_once(package: Any) -> None:
    objects = package(TAB, TAB.replace("Tab", "Tub"))
    with pytest.raises(InvalidPackage, match=r"example.com/v1 Tab \(object one\); example.com/v1 Tub .*Definition"):
        place(objects, scope)


def test_documents_that_become_one_object_in_the_default_namespace_are_refused(package: Any) -> None:
    objects = package(CONFIG, CONFIG.replace("one", "one, namespace: blue"))
    with pytest.raises(InvalidPackage, match="ConfigMap blue/one is written twice"):
        place(objects, scope, "blue")


def test_a_namespace_that_cannot_be_one_is_refused(package: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"additionalParams.namespace: 'No/Way' is not a DNS label"):
        place(package(CONFIG), scope, "No/Way")


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["v1", "List", "ConfigMap", "Secret", "x"])
)
FIELDS = st.sampled_from(
    ["apiVersion", "kind", "metadata", "name", "namespace", "items", "data", "stringData", "spec", "containers", "env"]
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary() | st.text().map(str.encode) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_nothing_but_invalid_package_comes_of_any_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "any.yaml").write_bytes(content)
    try:
        objects = load(tmp_path, ["any.yaml"])
    except InvalidPackage:
        return
    place(objects, lambda kind, version: True)
    assert all(obj["metadata"]["name"] and obj["metadata"]["namespace"] for obj in objects)


def test_texts_that_are_null_are_left_out_as_by_kubectl_apply(package: Any) -> None:
    (secret,) = package(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {l: null, m: x}, annotations: {n: null}}\n"
        "data: {a: null}\nstringData: {b: null}"
    )
    assert secret["metadata"] == {"name": "a", "labels": {"m": "x"}, "annotations": {}}
    assert secret["data"] == {}
