# SPDX-License-Identifier: Apache-2.0
"""Differences show no secrets, by the names of the fields that they are in."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.plan.field_diff import HIDDEN, changes
from k8s_cr_driver.redaction import FOREIGN_LIMIT
from tests.instance import config_map, obj


def db(**spec: Any) -> Object:
    return obj("example.com/v1", "Db", "a", spec=spec)


def changed(**after: Any) -> str:
    return "\n".join(map(str, changes(db(), db(**after))))


@pytest.mark.parametrize(
    "spec",
    [
        {"adminPassword": "canary"},
        {"db_password": "canary"},
        {"apiKey": "canary"},
        {"privateKey": "canary"},
        {"connectionString": "canary"},
        {"credentials": {"user": "canary"}},
        {"auth": {"password": {"value": "canary"}}},
        {"tokens": ["canary", "canary"]},
        {"env": [{"name": "DB_PASSWORD", "value": "canary"}]},
        {"containers": [{"name": "web", "env": [{"name": "API_KEY", "value": "canary"}]}]},
        {"url": "postgres://user:canary@host/db"},
        {"file": "password=canary"},
        {"file": "canary " * FOREIGN_LIMIT},
        {"x" * 254: "canary"},
        {"env": {"SMTP_PASSWD": "canary", "private-key": "canary"}},
        {"settings": [{"name": "pin-password", "value": 7133701}]},
        {"args": ["--user", "admin", "--password", "canary"]},
        {"containers": [{"name": "web", "command": ["run", "-api-key", "canary"]}]},
    ],
)
def test_values_of_secret_fields_are_hidden(spec: dict[str, Any]) -> None:
    assert "canary" not in changed(**spec)
    assert "7133701" not in changed(**spec)
    assert HIDDEN in changed(**spec)


def test_a_changed_variable_is_hidden_by_its_name() -> None:
    names = ("DB_PASSWORD", "MODE")
    was, now = (db(env=[{"name": name, "value": value} for name in names]) for value in ("canary", "dove"))
    hidden, shown = map(str, changes(was, now))
    assert hidden == f'spec.env[DB_PASSWORD].value: "{HIDDEN}" -> "{HIDDEN}"'
    assert shown == 'spec.env[MODE].value: "canary" -> "dove"'


def test_a_changed_argument_after_an_option_that_is_named_as_a_secret_is_hidden() -> None:
    was, now = (db(args=["--password", value, "--mode", value]) for value in ("canary", "dove"))
    assert list(map(str, changes(was, now))) == [
        f'spec.args[1]: "{HIDDEN}" -> "{HIDDEN}"',
        'spec.args[3]: "canary" -> "dove"',
    ]


@pytest.mark.parametrize("field", ["name", "key"])
@pytest.mark.parametrize("secret", ["db-password", "db.password", "dbPassword"])
def test_a_changed_entry_in_a_place_is_hidden_by_its_name(field: str, secret: str) -> None:
    names = (secret, "mode", "mode")  # so that none is found by its name
    was, now = (db(settings=[{field: name, "value": value} for name in names]) for value in ("canary", "dove"))
    hidden, *shown = map(str, changes(was, now))
    assert hidden == f'spec.settings[0].value: "{HIDDEN}" -> "{HIDDEN}"'
    assert shown == [f'spec.settings[{place}].value: "canary" -> "dove"' for place in (1, 2)]


@pytest.mark.parametrize("field", ["text", "values", "default"])
@pytest.mark.parametrize("is_listed", [True, False])
def test_an_entry_is_hidden_by_its_name_whatever_its_value_is_called(field: str, is_listed: bool) -> None:
    was, now = (
        {"key": "db-password", field: secret, "from": {"name": shown, "count": count}}
        for secret, shown, count in (("canary", "a", 1), (["dove"], "b", 2))
    )
    place, specs = ("[0]", ([was], [now])) if is_listed else ("", (was, now))
    found = changes(*(db(settings=one) for one in specs))
    assert sorted(map(str, found)) == sorted(
        [
            f'spec.settings{place}.{field}: "{HIDDEN}" -> ["{HIDDEN}"]',
            f"spec.settings{place}.from.count: 1 -> 2",
            f'spec.settings{place}.from.name: "a" -> "b"',
        ]
    )


def test_the_name_of_an_object_hides_no_labels() -> None:
    was, now = obj("v1", "ConfigMap", "web-token"), obj("v1", "ConfigMap", "web-token")
    now["metadata"]["labels"] = {"tier": "front"}
    assert "front" in "".join(map(str, changes(was, now)))


@pytest.mark.parametrize(
    "spec",
    [
        {"secretName": "shown"},
        {"passwordSecretRef": {"name": "shown", "key": "shown"}},
        {"secretKeyRef": {"name": "shown", "key": "shown"}},
        {"automountServiceAccountToken": True, "a": "shown"},
        {"volumes": [{"name": "v", "secret": {"secretName": "shown"}}]},
    ],
)
def test_references_to_secrets_are_shown(spec: dict[str, Any]) -> None:
    assert "shown" in changed(**spec) and HIDDEN not in changed(**spec)


def test_control_characters_are_escaped() -> None:
    assert "\x9b" not in changed(**{"a\x9b": "b\x9b", "c\x1b": "d\x1b"}) and "\x1b" not in changed(**{"c\x1b": "d"})


@pytest.mark.parametrize("key", [["a", "b"], "whsec_5f2b1canary0secret"], ids=["list", "secret"])
def test_a_key_is_a_name_only_if_it_looks_like_one(key: Any) -> None:
    """A condition of a policy has a list of keys."""
    before, after = (obj("example.com/v1", "Policy", "p", spec={"peers": [{"key": key, "host": one}]}) for one in "ab")
    (change,) = changes(before, after)
    assert change.path == "spec.peers[0].host"


@pytest.mark.parametrize("name", ["name", "key"])
@pytest.mark.parametrize("is_listed", [True, False])
def test_all_texts_of_an_entry_that_is_named_as_a_secret_are_hidden_where_the_whole_entry_differs(
    name: str, is_listed: bool
) -> None:
    entry = {name: "db-password", "data": {"text": ["canary"]}}
    assert "canary" not in changed(several=[entry] if is_listed else {"one": entry})
    before, after = db(several=[entry]), db(several=[])
    for found in (changes(before, after), changes(after, before)):
        assert "db-password" in str(found) and "canary" not in str(found)


@pytest.mark.parametrize("field", ["data", "stringData"])
@pytest.mark.parametrize(
    "before", [{"several": [{"kind": "Secret", "data": {"key": "one"}}]}, {"several": []}, {"several": None}, {}]
)
def test_a_secret_within_another_object_shows_no_value(field: str, before: dict[str, Any]) -> None:
    """As a ManifestWork has it, which creates it in another cluster."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, field: {"key": "canary", "name": "canary"}}
    was, now = (obj("example.com/v1", "Work", "a", spec=spec) for spec in (before, {"several": [secret]}))
    for found in (changes(was, now), changes(now, was)):
        assert HIDDEN in str(found) and "canary" not in str(found)


@pytest.mark.parametrize(
    "name", ["pass", "DB_PASS", "db-pass", "rootPass", "DB_PWD", "dbPwd", "AUTH_KEY", "hmacKey", "licenseKey", "sharedKey"]
)
def test_a_short_name_of_a_secret_hides_its_value(name: str) -> None:
    variable = {"name": name, "value": "canary"}
    assert "canary" not in changed(**{name: "canary"})
    assert "canary" not in changed(env=[variable])
    assert "canary" not in changed(args=[f"--{name}", "canary"])
    assert "canary" not in str(changes(db(env=[]), db(env=[variable])))


@pytest.mark.parametrize(
    "spec",
    [
        *({name: "shown"} for name in ("bypass", "BYPASS", "proxyBypass", "compass", "compassHeading", "passThrough")),
        *({name: "shown"} for name in ("primaryKey", "keyspace", "keySize", "monkey", "keyboard", "authMode", "licenses")),
        *({name: "shown"} for name in ("authKeyType", "sharedKeyPath", "data", "string")),
        {"tokenTTL": 3600, "maxTokens": 5, "a": "shown"},
        {"args": ["--bypass", "shown", "--primary-key", "shown"]},
        {"env": [{"name": "PRIMARY_KEY", "value": "shown"}, {"name": "BYPASS", "value": "shown"}]},
        {"several": [{"kind": "ConfigMap", "data": {"a": "shown"}}, {"kind": "Secret", "name": "shown"}]},
    ],
)
def test_other_fields_are_shown(spec: dict[str, Any]) -> None:
    assert "shown" in changed(**spec) and HIDDEN not in changed(**spec)


@pytest.mark.parametrize(
    ("text", "is_hidden"),
    [
        ("apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\ndata:\n  a.conf: canary\n", True),
        ('{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"a.conf":"canary"}}', True),
        ("kind: ConfigMap\ndata:\n  a.conf: canary\n", False),
        ("kind: SecretStore\ndata:\n  a.conf: canary\n", False),
        ("valuesFrom:\n- kind: Secret\n  name: canary\n", False),
    ],
)
def test_a_text_that_is_a_secret_is_hidden(text: str, is_hidden: bool) -> None:
    """As the ConfigMap of a ClusterResourceSet has it, and what kubectl apply writes into an annotation."""
    before = obj("v1", "ConfigMap", "a", data={"a": "x"})
    annotated = {**before, "metadata": {"name": "a", "annotations": {"b": text}}}
    for after in (obj("v1", "ConfigMap", "a", data={"a": text}), annotated):
        for found in (changes(before, after), changes(after, before)):
            assert ("canary" in str(found)) is not is_hidden


@pytest.mark.parametrize(
    "text",
    [
        r'{"s.yaml": "apiVersion: v1\nkind: Secret\ndata:\n  ca.key: hunter2"}',
        "<users><password>hunter2</password></users>",
        '<users><password type="plain">hunter2</password></users>',
        "<users><password><![CDATA[hunter2]]></password></users>",
        "<users><password>\n  <value>hunter2</value>\n</password></users>",
        '<properties><entry key="db.password">hunter2</entry></properties>',
        "<configuration><property><name>db.password</name><value>hunter2</value></property></configuration>",
    ],
)
def test_a_secret_in_json_or_xml_is_hidden(text: str) -> None:
    before, after = (config_map("a", **{"a.txt": value}) for value in ("x", text))
    assert "hunter2" not in "".join(map(str, changes(before, after)))


def test_a_field_that_has_a_dot_as_its_name_is_compared() -> None:
    assert [change.path for change in changes({**config_map("a"), ".": "a"}, config_map("a"))] == ["[.]"]
