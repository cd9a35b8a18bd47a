# SPDX-License-Identifier: Apache-2.0
"""What others say of a manifest loses its values in whatever form they are said, and keeps what names things."""

from __future__ import annotations

import base64
import html
import json
import re
import textwrap
import time
from collections.abc import Callable

import pytest

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.redaction import FOREIGN_LIMIT, REMOVED
from tests.fake_api import FakeApi, faults
from tests.instance import crontab, obj

CANARY = "hunter2x"
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", "MIIBhunter2xAA/+BBccDD", "EEhunter2xFFgg", "-----END PRIVATE KEY-----", ""])
WILD = 'pass\tword "of" C:\\temp\\users\n<hunter2x> & 5% größer'


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def message(manifest: Object, text: str) -> str:
    return SentValues([manifest]).removed_from(text)


def vault(*values: object) -> Object:
    return {**crontab("tab"), "spec": {"auth": [{"community": value} for value in values]}}


def custom(**spec: object) -> Object:
    return {**crontab("tab"), "spec": spec}


def in_lines(text: str) -> str:
    """As `base64 FILE` writes it."""
    return "\n".join(textwrap.wrap(text, 76)) + "\n"


def secret(value: str) -> Object:
    return obj("v1", "Secret", "a", "default", stringData={"a": value})


@pytest.mark.parametrize(
    "text",
    [
        f"denied the request: snmp community {CANARY} is not allowed",
        f"spec.auth: the password must not be {CANARY}",
        f"a text around{CANARY}of it",
    ],
)
@pytest.mark.parametrize("group", ["stable.example.com", "snapshot.storage.k8s.io", "k8s.example"])
def test_a_value_of_a_custom_resource_is_removed(text: str, group: str) -> None:
    assert CANARY not in message({**vault(CANARY), "apiVersion": f"{group}/v1"}, text)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Secret", {"stringData": {"a": CANARY}}),
        ("Secret", {"data": {"a": encoded(CANARY)}}),
        ("Secret", {"stringData": {"clouds.yaml": f"auth:\n  password: '{CANARY}'\n"}}),
        ("ConfigMap", {"data": {"a": CANARY}}),
        ("Pod", {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": CANARY}]}]}}),
        ("Pod", {"spec": {"containers": [{"name": "c", "args": ["--psk", CANARY]}]}}),
        ("TokenReview", {"spec": {"token": CANARY}}),
    ],
)
def test_a_value_of_a_built_in_kind_is_removed_where_it_may_be_secret(kind: str, fields: Object) -> None:
    assert CANARY not in message(obj("v1", kind, "a", "default", **fields), f"{CANARY} is wrong")


@pytest.mark.parametrize("manifest", [vault(PEM), secret(PEM)])
@pytest.mark.parametrize("text", [*PEM.splitlines()[1:3], PEM, json.dumps(PEM), " ".join(PEM.split("\n"))])
def test_each_line_of_a_value_is_removed(manifest: Object, text: str) -> None:
    assert "hunter2x" not in message(manifest, f"cannot parse {text} in the key")


@pytest.mark.parametrize("manifest", [vault(WILD), secret(WILD)])
@pytest.mark.parametrize(
    "text",
    [
        WILD,
        json.dumps(WILD),
        json.dumps(WILD, ensure_ascii=False),
        json.dumps(json.dumps(WILD)),
        json.dumps(WILD).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        repr(WILD),
        " ".join(WILD.split()),
        WILD.replace(" ", "%20").replace("<", "%3C").replace("5%", "5%25"),
        encoded(WILD).rstrip("="),
    ],
)
def test_a_value_is_removed_as_quotes_and_encodings_write_it(manifest: Object, text: str) -> None:
    assert re.sub(r"[\"'\\]", "", message(manifest, f"found {text} here")) == "found [value removed] here"


@pytest.mark.parametrize(
    "text", ['"hunter2x-of-a..."', "hunter2x-of-a\u2026 (cut)", "hunter2x-of-[truncated]", "it is hunter2x-of"]
)
def test_the_begin_of_a_value_that_was_cut_is_removed(text: str) -> None:
    assert "hunter2x" not in message(vault("hunter2x-of-a-long-password"), text)


def test_a_number_is_removed_unless_it_is_a_small_one() -> None:
    text = "the pin 482913 or 73625194 at port 65535 of 1482913"
    expected = "the pin [value removed] or [value removed] at port 65535 of 1482913"
    assert message(vault(482913, 73625194, 65535), text) == expected


def test_the_longest_value_is_removed_first() -> None:
    assert message(vault("hunter", CANARY), f"{CANARY} is wrong") == "[value removed] is wrong"


def test_values_that_overlap_are_removed_together() -> None:
    assert message(vault("hunter2x", "2xyz-and"), "no hunter2xyz-and more") == "no [value removed] more"


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ({**crontab("tab"), "spec": {"secretRef": {"name": "credentials"}, "a": "abcd"}}, "credentials abcd not found"),
        (obj("v1", "Pod", "a", "default", spec={"serviceAccountName": "worker"}), 'serviceaccount "worker" not found'),
        (obj("rbac.authorization.k8s.io/v1", "Role", "a", "default", rules=[{"verbs": ["create"]}]), "Verbs: [create]"),
        (vault("default", "false", "Enabled"), "default is not enabled: false"),
        (vault("CronTab", "stable.example.com"), "CronTab stable.example.com is wrong"),
        (vault("tables"), "the crontables are wrong"),
        (vault("hunter2x-of-a-long-password"), "the hunter2x, hunter2y and hunt..."),
        (obj("v1", "Pod", "a", spec={"containers": [{"command": ["/bin/server"]}]}), 'exec "/bin/server": no such file'),
        (obj("v1", "ConfigMap", "web-server", data={"a": "web-server"}), "web-server is missing"),
    ],
)
def test_what_names_things_and_common_words_stay(manifest: Object, text: str) -> None:
    assert message(manifest, text) == text


def test_the_error_of_a_crd_is_the_servers() -> None:
    """Its schema has fields of any name, and their values are words such as "required"."""
    manifest = obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", "bars.example.com")
    manifest["spec"] = {"schema": {"properties": {"value": {"required": ["source", "value"]}}}}
    text = 'CustomResourceDefinition "bars.example.com" is invalid: required value: must not be empty for specified source'
    assert message(manifest, text) == text


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_the_error_of_a_request_has_no_value_of_its_body(api: FakeApi, method: str) -> None:
    """Also one with a space, after the word that names a secret: the words after the first stay if that is removed first."""
    api.fail(faults.status(422, "Invalid", "password: correct horse battery is weak"), method=method)
    with Connection(Endpoint(api.url)) as connection, pytest.raises(ApiError) as raised:
        connection.request(method, "/api/v1/namespaces/default/configmaps/a", body=secret("correct horse battery"))
    assert "horse" not in f"{raised.value} {raised.value.causes}" and "is weak" in str(raised.value)


def test_a_conflict_names_no_entry_of_a_set(api: FakeApi) -> None:
    api.fail(faults.field_conflict(f'.spec.auth[="{CANARY}"]'), method="PATCH")
    with Connection(Endpoint(api.url)) as connection, pytest.raises(ApiError) as raised:
        connection.request("PATCH", "/api/v1/namespaces/default/configmaps/a", body=vault(CANARY))
    assert CANARY not in f"{raised.value} {raised.value.causes}"
    assert raised.value.causes[0][1].startswith(".spec.auth[=")


@pytest.mark.parametrize("part", ["a", "\\", "%", " ", "...", '"', "\\u0061", "hunter", "…", "a..."])
def test_hostile_texts_and_values_take_linear_time(part: str) -> None:
    """Quadratic time would be minutes."""
    text = part * (10 * FOREIGN_LIMIT // len(part))
    values = [text, f"{text}b", f"{text[:FOREIGN_LIMIT]}b", *(f"{text[:100]}{number}" for number in range(10_000))]
    began = time.process_time()
    message(vault(*values), text)
    assert time.process_time() - began < 2


CODE = "hunter2xyz"


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(obj("v1", "Secret", "a", data={"a": in_lines(encoded(f"a={CODE}\n" + "x" * 60))}), id="lines of base64"),
        pytest.param(secret(json.dumps({"auths": {"r.io": {"password": CODE}}})), id="JSON"),
        pytest.param(secret(json.dumps({"auths": {"r.io": {"auth": encoded(f"u:{CODE}")}}})), id="an auth of Docker"),
        pytest.param(custom(nodeGroups=[{"name": "a", "rootCode": CODE}]), id="below a name"),
        pytest.param(custom(userData=f"#cloud-config\nuser: x\nrootcode: {CODE}\n"), id="a line of a custom resource"),
        pytest.param(obj("v1", "ConfigMap", "a", "default", data={"env": f"A=1\nSNMP={CODE}\n"}), id="a line of a ConfigMap"),
        pytest.param(obj("storage.k8s.io/v1", "StorageClass", "a", parameters={"adminCode": CODE}), id="a StorageClass"),
        pytest.param(secret(f"users:\n  - {CODE}\n  - other\n"), id="an item of a list in YAML"),
        pytest.param(secret(json.dumps([CODE, "b"])), id="an item of a list in JSON"),
        pytest.param(custom(metadata={"adminCode": CODE}), id="a field of metadata in a spec"),
        pytest.param(obj("v1", "Pod", "a", "b", spec={"containers": [{"args": [f"--code={CODE}"]}]}), id="an argument"),
        pytest.param(obj("v1", "PersistentVolume", "a", spec={"flexVolume": {"options": {"code": CODE}}}), id="an option"),
    ],
)
def test_a_value_within_another_one_is_removed(manifest: Object) -> None:
    assert message(manifest, f"the registry refused {CODE} of u") == "the registry refused [value removed] of u"


def test_a_password_that_is_a_word_is_removed() -> None:
    assert message(custom(auth={"password": "swordfish"}), "it refused swordfish") == "it refused [value removed]"


@pytest.mark.parametrize("line", ["slack_api_url", "uri"])
@pytest.mark.parametrize("rest", ["/services/T0/B0/xoxo", "?sig=abcDEF123"])
def test_of_a_url_in_a_secret_its_host_stays(line: str, rest: str) -> None:
    said = message(secret(f"a: b\n{line}: https://hooks.example.com{rest}\n"), f'Post "https://hooks.example.com{rest}": EOF')
    assert said == 'Post "https://hooks.example.com[value removed]": EOF'


def test_without_words_only_what_is_more_than_one_is_removed() -> None:
    values = SentValues([secret("immutable"), secret("valid-after-creation")])
    said = values.removed_from("immutable: valid-after-creation", words=False)
    assert said == "immutable: [value removed]"


OPENSTACK = custom(extraArgs={"cloud-provider": "external"}, zone={"from": "Machine"}, status="Unknown", timeout="300s")
CLOUDS = secret(
    "auth_url: https://keystone.example.com:5000/v3\npassword: hunter2\nregion_name: RegionOne\ninterface: public\n"
)
WEB = obj("apps/v1", "Deployment", "web", "default", spec={"command": ["nginx"], "args": ["scale", "container"]})


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        (OPENSTACK, "failed to reconcile external network: found 0 external networks"),
        (OPENSTACK, "Machine blue-md-0-abc: Condition Ready on node is reporting status Unknown for more than 300s"),
        (CLOUDS, "public endpoint for network service in RegionOne region not found"),
        (CLOUDS, 'Post "https://keystone.example.com:5000/v3/auth/tokens": dial tcp 10.0.0.1:5000: connection refused'),
        (WEB, 'exec: "nginx": executable file not found in $PATH: unable to start container process'),
        (WEB, 'conflict with "kube-controller-manager" with subresource "scale" using apps/v1'),
        (custom(image="immutable-os", cronSpec="immutable-os"), "spec.cronSpec: field is immutable"),
    ],
)
def test_words_without_which_an_error_is_of_no_use_stay(manifest: Object, text: str) -> None:
    assert message(manifest, text) == text


def test_an_annotation_of_a_custom_resource_is_removed_but_what_says_how_it_is_applied() -> None:
    tab = crontab("tab")
    own = {"k8s-cr-driver/vdu": "DatabaseNodes", "config.kubernetes.io/depends-on": "apps/namespaces/default/Deployment/web"}
    tab["metadata"]["annotations"] = {"example.com/licence": "Zm9v-4711-qxyz", **own}
    text = "Zm9v-4711-qxyz of DatabaseNodes waits for apps/namespaces/default/Deployment/web"
    assert SentValues([tab]).removed_from(text) == text.replace("Zm9v-4711-qxyz", REMOVED)


@pytest.mark.parametrize("text", ['{\n  "password": "qX7!hunter2x",\n  "port": 1\n}', "A='qX7!hunter2x';\nB=2"])
def test_a_value_within_a_text_is_removed_whatever_ends_its_line(text: str) -> None:
    config = obj("v1", "ConfigMap", "one", "default", data={"config": text})
    assert "hunter2x" not in SentValues([config]).removed_from('the password "qX7!hunter2x" is too weak')


@pytest.mark.parametrize(
    "text",
    [
        "postgres://app:qX7!hunter2x@db:5432/app?sslmode=disable",
        "app:qX7!hunter2x@tcp(db:3306)/app",
        "host=db user=app password=qX7!hunter2x dbname=app",
        "Server=db;User Id=app;Password=qX7!hunter2x;Encrypt=true",
        "<server><password>qX7!hunter2x</password></server>",
        "port: 1\n# password: 'qX7!hunter2x'\n",
    ],
)
@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_a_secret_within_a_text_is_removed_without_the_text_around_it(kind: str, text: str) -> None:
    config = obj("v1", kind, "one", "default", **{"stringData" if kind == "Secret" else "data": {"config": text}})
    assert SentValues([config]).removed_from("qX7!hunter2x is too weak for db") == f"{REMOVED} is too weak for db"


def test_a_secret_within_a_text_is_removed_also_if_it_is_a_word() -> None:
    config = obj("v1", "ConfigMap", "one", "default", data={"dsn": "host=db password=Sesame port=5432"})
    assert SentValues([config]).removed_from("Sesame is refused by port 5432") == f"{REMOVED} is refused by port 5432"


ODD = "qX7!<hunter2x>&'more'"


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(html.escape(ODD), id="HTML"),
        pytest.param("".join(f"&#{ord(one)};" for one in ODD), id="decimal references"),
        pytest.param("".join(f"&#x{ord(one):X};" for one in ODD), id="hexadecimal references"),
        pytest.param(ODD.upper(), id="upper case"),
        pytest.param(ODD.lower(), id="lower case"),
        pytest.param(ODD.encode().hex(), id="hex"),
        pytest.param(ODD.encode().hex().upper(), id="upper hex"),
    ],
)
@pytest.mark.parametrize("manifest", [vault(ODD), secret(ODD)])
def test_a_value_is_removed_in_another_case_in_hex_and_in_html(manifest: Object, said: str) -> None:
    assert message(manifest, f"found {said} here") == "found [value removed] here"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_value_within_the_base64_of_a_longer_text_is_removed(
    before: str, after: str, encode: Callable[[bytes], bytes]
) -> None:
    """But for the characters at its ends, which hold a part of what is around."""
    said = encode(f"{before}{ODD}{after}".encode()).decode()
    shown = message(secret(ODD), f"auth {said} refused")
    assert REMOVED in shown and len(shown.replace(REMOVED, "")) < len("auth  refused") + len(before + after) * 4 // 3 + 8


@pytest.mark.parametrize("mark", ["...", "\u2026", "[truncated]", "... "])
def test_the_end_of_a_value_whose_begin_was_cut_is_removed(mark: str) -> None:
    said = message(vault("a-long-passphrase-hunter2x"), f"got {mark}phrase-hunter2x at the end")
    assert "hunter2x" not in said and said.endswith("at the end")
