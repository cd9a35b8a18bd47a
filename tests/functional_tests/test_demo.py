# SPDX-License-Identifier: Apache-2.0
"""The demo of three masters: its package and its request fit each other, and its terminal shows the steps."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from click.testing import CliRunner
from rich.console import Console

from functional_tests.demo import ha_package, ha_setting
from functional_tests.demo.script_log import ScriptLog
from k8s_cr_driver.cli.commands import main as tool

LOG = """\
2026-01-01 00:00:00.000 7 INFO k8s_cr_driver.lcm.node_clusters [-] 4a1f instantiate_end: workers: 1 step
2026-01-01 00:00:01.000 7 WARNING urllib3 [-] a retry: no step
2026-01-01 00:00:02.000 7 INFO k8s_cr_driver.lcm.node_clusters [-] 4a1f instantiate_end: all 4 nodes are Ready; 9 changes
2026-01-01 00:00:03.000 7 INFO k8s_cr_driver.writes.audit [-] {"verb": "PATCH"}
"""


def test_the_package_and_the_request_fit(tmp_path: Path) -> None:
    made, folder = ha_package.make(tmp_path), tmp_path / "unpacked"
    with zipfile.ZipFile(made) as archive:
        archive.extractall(folder)
    place = ha_setting.Place("net", "out", "ssh-ed25519 AAAA")
    request = tmp_path / "request.json"
    request.write_text(json.dumps(ha_setting.request(place)))
    done = CliRunner().invoke(tool, ["validate", str(folder), "--request", str(request)])
    assert done.exit_code == 0 and "0 errors" in done.output, done.output
    assert "class" in (folder / "Scripts" / "install.sh").read_text()


def test_the_steps_of_the_servers_are_shown(tmp_path: Path) -> None:
    log = ScriptLog(tmp_path / "log")
    assert log.summary() == "none"
    (tmp_path / "log").write_text(LOG)
    assert log.summary() == "all 4 nodes are Ready; 9 changes"
    console = Console(width=120, record=True)
    console.print(log)
    shown = console.export_text()
    assert "workers: 1 step" in shown and "instantiate_end" in shown and "a retry" not in shown
