# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr vim` and `k8s-cr role`: how Tacker reaches a cluster, and what it may do there."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.credentials import service_account
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from tests.cli.packages import write_package
from tests.cli.tool import Tool, kubeconfig
from tests.fake_api import FakeApi
from tests.instance import config_map, crontab, crontab_crd, obj

TOKEN = "token-of-the-account"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_package(tmp_path / "p", [crontab_crd(), crontab("one"), obj("v1", "ConfigMap", "a")])
    (made / "request.json").write_text('{"flavourId": "simple", "additionalParams": {"namespace": "blue"}}')
    return made


@pytest.fixture
def namespaces(api: FakeApi) -> None:
    for name in ("blue", "kube-system", "default"):
        api.put(obj("v1", "Namespace", name))


@pytest.fixture
def controller(api: FakeApi, namespaces: None) -> None:
    """The token controller."""

    def control(secret: dict[str, Any]) -> None:
        if secret.get("type") == "kubernetes.io/service-account-token" and not secret.get("data"):
            data = {"token": base64.b64encode(TOKEN.encode()).decode()}
            key = secret["metadata"]["namespace"], secret["metadata"]["name"]
            api.edit("Secret", *key, lambda live: live.update(data=data))

    api.react("Secret", control)


def with_user(tool: Tool, api: FakeApi, **user: str) -> None:
    tool.kubeconfig.write_text(yaml.safe_dump(kubeconfig(api.url, **user)))


def test_the_connection_of_a_kubeconfig_is_one_that_the_driver_takes(tool: Tool, api: FakeApi) -> None:
    with_user(tool, api, token="abc")
    [info] = json.loads(tool.run("vim").stdout).values()
    found = vim_endpoint(info["interfaceInfo"], info["accessInfo"])
    assert (info["vimType"], found.url, found.authorization) == ("ETSINFV.KUBERNETES.V_1", api.url, "Bearer abc")


def test_a_request_is_completed(tool: Tool, api: FakeApi, folder: Path) -> None:
    with_user(tool, api, token="abc")
    request = json.loads(tool.run("vim", "--package", str(folder)).stdout)
    assert (request["flavourId"], list(request["vimConnectionInfo"])) == ("simple", ["vim1"])


def test_a_request_moves_no_cursor(tool: Tool, api: FakeApi, folder: Path) -> None:
    (folder / "request.json").write_text(json.dumps({"flavourId": "\x9b2J\u202e"}))
    with_user(tool, api, token="abc")
    shown = tool.run("vim", "--package", str(folder)).stdout
    assert json.loads(shown)["flavourId"] == "\x9b2J\u202e" and shown.isascii()


def test_a_kubeconfig_without_a_token_has_a_remedy(tool: Tool) -> None:
    assert "give --package and --account" in tool.run("vim", code=2).stderr


def test_an_address_of_this_host_is_reported(tool: Tool, api: FakeApi) -> None:
    with_user(tool, api, token="abc")
    assert "the conductor needs one that leads to the cluster" in tool.run("vim").stderr


def test_an_account_gets_the_permissions_of_the_package_and_no_more(
    tool: Tool, api: FakeApi, folder: Path, controller: None
) -> None:
    request = json.loads(tool.run("vim", "--package", str(folder), "--account", "kube-system/web").stdout)
    assert request["vimConnectionInfo"]["vim1"]["accessInfo"] == {"bearer_token": TOKEN}
    printed = list(yaml.safe_load_all(tool.run("role", str(folder), "--account", "web").stdout))
    for one in printed:
        live = api.get(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        assert all(live[key] == one[key] for key in ("rules", "subjects", "roleRef") if key in one)
    assert [one["metadata"]["namespace"] for one in printed if one["kind"] == "Role"] == ["blue", "default"]


def test_the_account_of_another_package_has_its_permissions_then(
    tool: Tool, api: FakeApi, folder: Path, tmp_path: Path, controller: None
) -> None:
    tool.run("vim", "--package", str(folder), "--account", "web")
    other = write_package(tmp_path / "other", [config_map("a", "default")])
    tool.run("vim", "--package", str(other), "--account", "web")
    [rule, events] = api.get("Role", "default", "web")["rules"]
    assert (rule["resources"], events["resources"]) == (["configmaps"], ["events"])


def test_an_account_in_a_namespace_that_does_not_exist_has_a_remedy(tool: Tool, folder: Path, namespaces: None) -> None:
    error = tool.run("vim", "--package", str(folder), "--account", "tacker/web", code=3).stderr
    assert "tacker does not exist; make it: kubectl create namespace tacker" in error


def test_an_account_needs_a_package(tool: Tool) -> None:
    assert "needs --package" in tool.run("vim", "--account", "a", code=2).stderr


def test_a_cluster_that_writes_no_token(tool: Tool, folder: Path, namespaces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_account, "TOKEN_WITHIN", 0.1)
    shown = tool.run("vim", "--package", str(folder), "--account", "web", code=3).stderr
    assert "Secret kube-system/web gets no token" in shown


def test_a_file_with_the_token_is_the_user_s_own(tool: Tool, api: FakeApi, folder: Path, tmp_path: Path) -> None:
    with_user(tool, api, token="abc")
    (tmp_path / "send.json").write_text("before")
    shown = tool.run("vim", "--package", str(folder), "-o", str(tmp_path / "send.json"))
    assert stat.S_IMODE((tmp_path / "send.json").stat().st_mode) == 0o600
    assert "abc" in (tmp_path / "send.json").read_text() and "abc" not in shown.output


@pytest.mark.parametrize("account", ["A", "a/", "/a", "a/b/c", "../a"])
def test_a_name_that_no_account_has(tool: Tool, folder: Path, account: str) -> None:
    assert "is no NAME or NAMESPACE/NAME" in tool.run("role", str(folder), "--account", account, code=2).stderr


def test_kinds_of_unknown_scope_are_reported(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [crontab("one")])
    assert "CronTab.stable.example.com" in tool.run("role", str(folder)).stderr
