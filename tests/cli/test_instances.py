# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr instances`, and what all commands have in common."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from k8s_cr_driver.cli.commands import main
from tests.cli.tool import Tool, kubeconfig
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import BLUE, GREEN, Instance, config_map, crontab, crontab_crd, obj


def test_instances_count_their_objects_by_kind(api: FakeApi, tool: Tool) -> None:
    Instance(api.url, BLUE).reconcile([crontab_crd(), crontab("one"), crontab("two"), config_map("own")])
    for name in ("theirs", "somebody-elses"):
        api.put(config_map(name))
    green_set = [obj("v1", "Namespace", "green"), config_map("own", "green"), config_map("theirs")]
    Instance(api.url, GREEN, adopt=True).reconcile(green_set)
    blue, green = tool.json("instances")
    crds = "CustomResourceDefinition.apiextensions.k8s.io"
    assert (blue["id"], blue["operation"], blue["inventoryNamespace"]) == (BLUE, "test", "default")
    assert blue["objects"] == {"ConfigMap": 1, "CronTab.stable.example.com": 2, crds: 1}
    assert (green["objects"], green["namespaces"]) == ({"ConfigMap": 2, "Namespace": 1}, ["default", "green"])
    assert (blue["adopted"], green["adopted"]) == ([], ["ConfigMap default/theirs"])


def test_a_kind_that_the_api_server_cannot_list_hides_no_instance(api: FakeApi, tool: Tool) -> None:
    Instance(api.url, BLUE).reconcile([crontab_crd(), crontab("one"), config_map("own")])
    words = 'conversion webhook for stable.example.com/v1, Kind=CronTab failed: Post "https://w.d.svc:443/": EOF'
    api.fail(faults.internal(words), path="/crontabs", times=9)
    result = tool.run("instances")
    assert BLUE in result.stdout
    assert "Incomplete:" in result.stderr and "conversion webhook" in result.stderr


def test_the_plain_table_has_a_line_for_each_instance(api: FakeApi, tool: Tool) -> None:
    kinds = ["Secret", "ConfigMap", "Service", "ServiceAccount", "PersistentVolumeClaim"]
    controllers.run_workloads(api)
    Instance(api.url, BLUE).reconcile([obj("v1", kind, "one") for kind in kinds] + [config_map("two")])
    head, line = tool.run("instances").stdout.splitlines()
    assert head.split()[:2] == ["INSTANCE", "AGE"]
    assert line.startswith(BLUE)
    assert "2 ConfigMap, " in line
    assert ", 1 more" in line
    assert "\x1b" not in line


def test_only_one_inventory_namespace_is_read_where_it_is_given(api: FakeApi, tool: Tool) -> None:
    Instance(api.url, BLUE).reconcile([config_map("own")])
    assert tool.json("instances", "--inventory-namespace", "kube-public") == []
    api.knobs.denied.add(("list", "", "configmaps", "*"))
    assert "--inventory-namespace" in tool.run("instances", code=2).stderr


def test_an_inventory_that_makes_no_sense_is_named_and_left_out(api: FakeApi, tool: Tool) -> None:
    Instance(api.url, BLUE).reconcile([config_map("own")])
    Instance(api.url, GREEN).reconcile([config_map("other")])
    name = f"k8s-cr-driver-{BLUE}"
    api.edit("ConfigMap", "default", name, lambda live: live["metadata"]["annotations"].update({"k8s-cr-driver/adopted": "{"}))
    result = tool.run("instances")
    assert f"Left out: the inventory default/{name}: the response is malformed. If it stays so" in result.stderr
    assert GREEN in result.stdout and BLUE not in result.stdout
    assert "is malformed" in tool.run("tree", BLUE, code=3).stderr


def test_control_characters_of_others_are_escaped(api: FakeApi, tool: Tool) -> None:
    Instance(api.url, BLUE).reconcile([config_map("own")])
    forged = {"k8s-cr-driver/operation": "\x1b[2J\x9bgone\nnext"}
    api.edit("ConfigMap", "default", f"k8s-cr-driver-{BLUE}", lambda live: live["metadata"]["annotations"].update(forged))
    assert "\\x1b[2J\\x9bgone next" in tool.run("instances").stdout
    assert tool.json("instances")[0]["operation"] == "\x1b[2J\x9bgone\nnext"
    assert not {"\x1b", "\x9b"} & set(tool.run("instances", "-o", "json").stdout)


@pytest.mark.parametrize(("command", "shown"), [(["instances"], "1 Secret"), (["tree", BLUE], "Secret default/own  Ready")])
def test_secret_data_is_not_asked_for(api: FakeApi, tool: Tool, command: list[str], shown: str) -> None:
    Instance(api.url, BLUE).reconcile([obj("v1", "Secret", "own", "default", data={"a": "YQ=="})])
    api.requests.clear()
    assert shown in tool.run(*command).stdout
    accepted = [one.headers.get("Accept", "") for one in api.requests if one.path.endswith("/secrets")]
    assert accepted
    assert all("as=PartialObjectMetadataList" in one for one in accepted)


def test_a_cluster_that_refuses_is_one_message_and_code_3(api: FakeApi, tool: Tool) -> None:
    api.fail(faults.internal("etcd is away"), method="GET", path="/apis$")
    (line,) = tool.run("instances", code=3).stderr.splitlines()
    assert line == "Error: GET /apis: 500 InternalError: Internal error occurred: etcd is away"


def test_a_cluster_that_is_down_is_one_message_and_code_3(api: FakeApi, tool: Tool) -> None:
    with api.down():
        assert "cannot connect" in tool.run("instances", code=3).stderr


def test_credentials_that_are_not_accepted_are_named_as_a_kubeconfig_has_them(api: FakeApi, tool: Tool) -> None:
    api.knobs.tokens = {"right"}
    tool.kubeconfig.write_text(yaml.safe_dump(kubeconfig(api.url, token="wrong-canary")))
    error = tool.run("instances", code=3).stderr
    assert "(401)" in error
    assert "Check token, or client-certificate-data and client-key-data, in the kubeconfig" in error
    assert "canary" not in error
    tool.kubeconfig.write_text(yaml.safe_dump(kubeconfig(api.url, token="right")))
    assert tool.json("instances") == []


def test_a_certificate_of_an_unknown_authority_is_reported(tls_api: FakeApi, tool: Tool) -> None:
    tool.kubeconfig.write_text(yaml.safe_dump(kubeconfig(tls_api.url)))
    assert "certificate-authority-data" in tool.run("instances", code=3).stderr


def test_an_interrupt_ends_with_130(api: FakeApi, tool: Tool) -> None:
    api.fail(faults.hang(), path="/configmaps")
    process = tool.start("instances")
    while not api.requests.select(path="/configmaps"):
        assert process.poll() is None
    assert tool.interrupt(process) == 130
    *warnings, last = process.communicate()[1].splitlines()
    assert last == "Interrupted"
    assert "Traceback" not in str(warnings)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "not a whole kubeconfig"),
        ("a: [", "not a whole kubeconfig"),
        ("[" * 5000, "not a whole kubeconfig"),
        (yaml.safe_dump({**kubeconfig("http://x"), "current-context": "b"}), "no context 'b'"),
        (yaml.safe_dump(kubeconfig("http://x", exec={"command": "login"})), "user u has exec"),
        (None, "give --kubeconfig"),
    ],
)
def test_a_kubeconfig_that_is_bad_or_missing_is_a_usage_error(
    tool: Tool, tmp_path: Path, content: str | None, expected: str
) -> None:
    path = tmp_path / "bad"
    if content is not None:
        path.write_text(content)
    assert expected in tool.run("instances", "--kubeconfig", str(path), code=2).stderr


def test_a_terminal_gets_a_table_that_fits_it(api: FakeApi, tool: Tool) -> None:
    Instance(api.url, BLUE).reconcile([config_map("own")])
    with tool.on_terminal("instances") as (process, until):
        assert "\x1b[1m" in until("1 ConfigMap")
        assert process.wait(60) == 0


def test_an_interrupt_of_the_imports_ends_with_130(tool: Tool) -> None:
    interrupt = "lambda name, *_: signal.raise_signal(signal.SIGINT) if name == 'k8s_cr_driver.cli.purge' else None"
    before = f"import sys, types; sys.meta_path.insert(0, types.SimpleNamespace(find_spec={interrupt}))"
    process = tool.start("purge", before=before)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (130, "", "\nInterrupted\n")


@pytest.mark.parametrize("command", [["instances"], ["tree", BLUE]])
def test_a_closed_output_is_no_failure(api: FakeApi, tool: Tool, command: list[str]) -> None:
    Instance(api.url, BLUE).reconcile([config_map("own")])
    program = [sys.executable, "-c", "from k8s_cr_driver.cli import main; main()"]
    process = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *program, *command, "--kubeconfig", str(tool.kubeconfig)],
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("shell", "at", "expected"),
    [("bash", "1", "plain,validate\n"), ("zsh", "1", "plain\nvalidate\nCheck"), ("fish", "va", "plain,validate\tCheck")],
)
def test_a_shell_completes_commands(tool: Tool, shell: str, at: str, expected: str) -> None:
    environment = {"_K8S_CR_COMPLETE": f"{shell}_complete", "COMP_WORDS": "k8s-cr va", "COMP_CWORD": at}
    result = CliRunner(env=environment).invoke(main, [], prog_name="k8s-cr")
    assert result.stdout.startswith(expected)


def test_the_tool_prints_its_version(tool: Tool) -> None:
    assert metadata.version("k8s-cr-driver") in tool.run("--version").stdout
