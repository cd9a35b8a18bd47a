# SPDX-License-Identifier: Apache-2.0
"""The protocol between Tacker and a management driver, whatever the driver does."""

from __future__ import annotations

import copy
import importlib.metadata
import pickle
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.lcm import hook
from k8s_cr_driver.redaction import lines

GIVEN: dict[str, Any] = {
    "operation": "heal_end",
    "request": {},
    "vnf_instance": {"id": "1"},
    "user_script_err_handling_data": {},
}


def respond(monkeypatch: pytest.MonkeyPatch, driver: hook.Driver, **given: Any) -> tuple[dict[str, Any], str]:
    """What goes back to Tacker from `driver`, installed under the name `mine`."""
    entry = importlib.metadata.EntryPoint("mine", "", hook.GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: [entry])
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda _: driver)
    return hook.respond("mine", Path("/package/Scripts/mine.py"), copy.deepcopy({**GIVEN, **given}))


def test_the_instance_and_the_error_data_go_back_also_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def driver(call: hook.Call) -> None:
        call.instance["metadata"], call.error_data["step"] = {"a": "1"}, 2
        raise InvalidRequest(lines(["the first line", "the second"]))

    returned, failure = respond(monkeypatch, driver)
    assert returned == {"vnf_instance": {"id": "1", "metadata": {"a": "1"}}, "user_script_err_handling_data": {"step": 2}}
    assert failure == "mine: the first line; the second"


def test_an_error_in_the_driver_itself_shows_where_it_is_but_none_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def driver(_: hook.Call) -> None:
        raise KeyError("password-of-somebody")

    _, failure = respond(monkeypatch, driver)
    assert failure.startswith("mine: failed in the driver itself: KeyError in driver, test_hook.py:")
    assert "somebody" not in failure


def test_a_deadline_ends_also_what_catches_every_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def driver(_: hook.Call) -> None:
        with hook.deadline(0.05):
            while True:
                try:
                    time.sleep(10)
                except Exception:
                    continue

    assert respond(monkeypatch, driver)[1] == "mine: its deadline has passed"


def test_the_cluster_and_the_namespaces_are_those_of_the_instance(
    monkeypatch: pytest.MonkeyPatch, options_file: Path
) -> None:
    def record(metadata: dict[str, Any]) -> dict[str, Any]:
        return {"id": "1", "instantiatedVnfInfo": {"metadata": metadata}}

    calls: list[hook.Call] = []
    access = {"interfaceInfo": {"endpoint": "https://127.0.0.1:1"}, "accessInfo": {"bearer_token": "t"}}
    for instance in (
        {"id": "1", "vimConnectionInfo": {}},
        {"id": "1", "vimConnectionInfo": {"vim1": access}},
        record({"namespace": "blue"}),
        record({"namespace": "blue", "k8s_cr": {"inventory": {"namespaces": ["red", "green"]}}}),
    ):
        respond(monkeypatch, calls.append, vnf_instance=instance)
    assert calls[0].endpoint() is None and calls[0].namespaces() == [""]
    endpoint = calls[1].endpoint()
    assert endpoint is not None and (endpoint.url, endpoint.authorization) == ("https://127.0.0.1:1", "Bearer t")
    assert calls[2].namespaces() == ["blue"] and calls[3].namespaces() == ["red", "green"]


def test_what_others_print_does_not_reach_tacker(tmp_path: Path) -> None:
    """In a process of its own: a driver that does not exist is the failure, beside output of a library."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import importlib.metadata, os, sys
            from k8s_cr_driver.lcm import hook

            def noisy(**_):
                os.write(1, b"noise")
                print("noise", file=sys.stderr)
                return []

            importlib.metadata.entry_points = noisy
            sys.exit(hook.run("mine", __file__))
            """
        )
    )
    out = subprocess.run([sys.executable, script], input=pickle.dumps(GIVEN), capture_output=True)
    assert out.returncode == 1 and out.stderr.startswith(b"mine: failed in the driver itself: ValueError")
    assert pickle.loads(out.stdout)["vnf_instance"] == {"id": "1"} and b"noise" not in out.stdout + out.stderr


def test_what_a_driver_logs_stands_in_the_conductors_log(tmp_path: Path, options_file: Path) -> None:
    """Tacker itself logs nothing of a script. What asyncssh says of each command is left out."""
    log = tmp_path / "conductor.log"
    options_file.write_text(f"[DEFAULT]\nlog_file = {log}\nlog_rotation_type = size\nmax_logfile_size_mb = 1\n")
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import importlib.metadata, logging, sys
            from k8s_cr_driver.lcm import hook
            from k8s_cr_driver.logs import logger

            class Entry:
                def load(self):
                    logging.getLogger("asyncssh").info("Command: cat /etc/shadow")
                    return lambda call: logger("k8s_cr_driver.mine").info("%s: workers: 1 step", call.instance["id"])

            importlib.metadata.entry_points = lambda **_: [Entry()]
            sys.exit(hook.run("mine", __file__))
            """
        )
    )
    out = subprocess.run([sys.executable, script], input=pickle.dumps(GIVEN), capture_output=True)
    assert (out.returncode, out.stderr) == (0, b"")
    [line] = log.read_text().splitlines()
    assert " INFO k8s_cr_driver.mine [-] 1: workers: 1 step" in line
