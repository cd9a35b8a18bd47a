# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the driver's options: a line for each mistake, for the tool and in the conductor's log."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner
from oslo_config import cfg

from k8s_cr_driver.cli.commands import main
from k8s_cr_driver.lcm import conf, conf_check, registration
from k8s_cr_driver.lcm.options import GROUPS, OF_ID

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *(ROOT / "doc" / "source").rglob("*.rst")]
INI = re.compile(r"^( *)\.\. code-block:: ini\n\n((?:\1   .*\n|\n)+)", re.MULTILINE)


def found(tmp_path: Path, text: str) -> list[str]:
    """What is said of a tacker.conf with that text, without its path."""
    file = tmp_path / "tacker.conf"
    file.write_text(text)
    return [one.removeprefix(f"{file}: ") for one in conf_check.mistakes([file])]


@pytest.mark.parametrize(
    ("option", "value", "clause"),
    [
        ("denied_namespace", "kube-*", "there is no such option, so it has no effect; did you mean denied_namespaces?"),
        ("project_share", "50%", "could not convert string to float: '50%'"),
        ("max_objects", "0", "Should be greater than or equal to 1"),
        ("restrict_tenants", "maybe", "Unexpected boolean value 'maybe'"),
        ("tenant_pod_security", "privileged", "Valid values are [baseline, restricted], but found 'privileged'"),
        ("allowed_endpoints", "https://10.0.0.1:6443", "'https://10.0.0.1:6443' is a URL; write its host alone"),
        ("allowed_endpoints", "10.0.0.1:6443", "'10.0.0.1:6443' has a port; write the host alone"),
        ("allowed_endpoints", "10.0.0.0/99", "'10.0.0.0/99' is no network, such as 10.20.0.0/16"),
        ("allowed_ssh_hosts", "10.0.0.7/16", "'10.0.0.7/16' is an address in a network; write 10.0.0.0/16 for all of it"),
        (
            "allowed_endpoints",
            "a.example.com # here",
            "'a.example.com # here' is no name, address or network; a comment stands on a line of its own",
        ),
        (
            "denied_kinds",
            "apps/Deployment",
            "'apps/Deployment' is no kind; write Kind or Kind.group, such as Deployment.apps, with * for any part",
        ),
        ("denied_namespaces", "Kube_*", "'Kube_*' is no name of a namespace, with * for any part"),
        (
            "allowed_scripts",
            "sha256:00",
            "'sha256:00' is no SHA-256; write its 64 hexadecimal digits alone, as k8s-cr check-package prints them",
        ),
        ("health_rules", "/does/not/exist", "/does/not/exist: is no folder; name one with files of rules"),
        (
            "ssh_known_hosts",
            "/does/not/exist",
            "/does/not/exist: No such file or directory; the conductor's user must be able to read it",
        ),
    ],
)
def test_a_mistake_in_k8s_cr_names_the_option_and_the_remedy(tmp_path: Path, option: str, value: str, clause: str) -> None:
    assert found(tmp_path, f"[k8s_cr]\n{option} = {value}\n") == [f"[k8s_cr] {option}: {clause}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[k8scr]\nx = 1", ["[k8scr]: there is no such group, so it has no effect; did you mean [k8s_cr]?"]),
        ("[k8s-cr:red]\nx = 1", ["[k8s-cr:red]: there is no such group, so it has no effect; did you mean [k8s_cr:red]?"]),
        ("[k8s_cr_receiver]\nurl = x", ["[k8s_cr_receiver]: has no name; write [k8s_cr_receiver:NAME]"]),
        (
            "[k8s_cr:red]\ninventory_namespace = x",
            ["[k8s_cr:red] inventory_namespace: has no effect here; it holds for all, in [k8s_cr]"],
        ),
        ("[k8s_cr:red]\nallowed_namespaces = red-*\nallow_cluster_scoped = no\nallowed_receivers = a.example.com", []),
        (
            "[k8s_cr_load_balancer:a]\naddress = 10.0.0.1\nusername = u",
            ["[k8s_cr_load_balancer:a] private_key: is missing", "[k8s_cr_load_balancer:a] projects: is missing"],
        ),
        (
            "[DEFAULT]\ndebug = ?\n[k8s_vim]\nx = 1\n[k8s_cr]\nallowed_endpoints = *,10.0.0.0/8,fd00::/8,fd00::1,*.a.org\n",
            [],
        ),
        ("[k8s_cr]\nhealth_rules = $state_path/rules", []),
        ("[k8s_cr]\npassword", ["line 2 is neither [GROUP], nor NAME = VALUE, nor a comment"]),
    ],
)
def test_groups_are_judged_by_their_names(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert found(tmp_path, text) == expected


def test_the_files_of_a_receiver_are_read_and_its_secrets_are_for_one_user(tmp_path: Path) -> None:
    for name in ("hmac.key", "token", "ca.crt"):
        (tmp_path / name).write_text("short")
        (tmp_path / name).chmod(0o640)
    (tmp_path / "token").chmod(0o644)
    text = f"""\
        [k8s_cr_receiver:Edge_1]
        url = https:///x
        hmac_key_file = {tmp_path}/hmac.key
        bearer_token_file = {tmp_path}/token
        ca_file = {tmp_path}/ca.crt
        client_key_file = {tmp_path}/missing
    """
    group, url, key, token, ca, client_key = found(tmp_path, textwrap.dedent(text))
    assert group == "[k8s_cr_receiver:Edge_1]: its name must have lower-case letters, digits and -"
    assert url.endswith(" url: 'https:///x' is no https URL with a host, such as https://receiver.example.com:8443/")
    assert key.endswith(f"hmac_key_file: {tmp_path}/hmac.key is shorter than 32 bytes; make one with: openssl rand -hex 32")
    assert token.endswith(f"{tmp_path}/token: other users may read it; change that with: chmod o-r {tmp_path}/token")
    assert ca.endswith(f"ca_file: {tmp_path}/ca.crt: is no certificate as PEM")
    assert client_key.endswith("missing: No such file or directory; the conductor's user must be able to read it")


def test_a_later_file_replaces_what_an_earlier_one_has(tmp_path: Path) -> None:
    first, second = tmp_path / "a.conf", tmp_path / "b.conf"
    first.write_text("[k8s_cr]\nmax_kinds = x\nmax_objects = x\n")
    second.write_text("[k8s_cr]\nmax_kinds = 5\n")
    [line] = conf_check.mistakes([first, second])
    assert line.startswith(f"{first}: [k8s_cr] max_objects: ")


def test_the_tool_checks_files_and_folders_of_options(tmp_path: Path) -> None:
    (tmp_path / "tacker.conf.d").mkdir()
    (tmp_path / "tacker.conf.d" / "a.conf").write_text("[k8s_cr]\nmax_object = 5\n")
    (tmp_path / "tacker.conf").write_text("[k8s_cr]\nmax_kinds = 5\n")
    files = ["--config-file", str(tmp_path / "tacker.conf")]
    right = CliRunner().invoke(main, ["check-tacker", *files])
    assert (right.exit_code, right.output) == (0, "The driver fits the Tacker in this environment, and its options are right\n")
    wrong = CliRunner().invoke(main, ["check-tacker", *files, "--config-file", str(tmp_path / "tacker.conf.d")])
    assert wrong.exit_code == 1
    assert wrong.output.startswith(f"{tmp_path}/tacker.conf.d/a.conf: [k8s_cr] max_object: there is no such option")


def test_a_conductor_logs_each_mistake_and_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "tacker.conf"
    file.write_text("[k8s_cr]\nmax_kinds = 5\ndenied_kind = Secret\n")
    monkeypatch.setattr(cfg, "CONF", parsed := cfg.ConfigOpts())
    parsed([f"--config-file={file}"])
    assert registration.install()
    [line] = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert line.startswith(f"{file}: [k8s_cr] denied_kind: there is no such option")


def test_the_examples_of_the_documents_are_right(tmp_path: Path) -> None:
    blocks = [(path, textwrap.dedent(block)) for path in DOCUMENTS for _, block in INI.findall(path.read_text())]
    assert sum("[k8s_cr" in block for _, block in blocks) >= 8
    for path, block in blocks:
        lines = [one for one in found(tmp_path, block) if "No such file" not in one and not one.endswith("is missing")]
        assert not lines, path
        assert not re.search(r"^[^#\n]*=.* #", block, re.MULTILINE), f"{path}: oslo.config takes a comment for a value"


def test_the_reference_names_the_options_of_a_project_and_each_group() -> None:
    text = (ROOT / "doc/source/reference/options.rst").read_text()
    assert set(re.findall(r"``(\w+)``", text)) >= {option.dest for option in OF_ID}
    assert {name.partition(":")[0] for name, _ in conf.list_opts()} == set(GROUPS)
