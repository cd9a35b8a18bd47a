# SPDX-License-Identifier: Apache-2.0
"""Whether tests can run on a cluster that exists."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from functional_tests.testbed import bed, existing
from functional_tests.testbed.__main__ import main
from functional_tests.testbed.preconditions import PreconditionError
from tests.fake_api import FakeApi


@pytest.fixture
def kubeconfig(api: FakeApi, tmp_path: Path) -> Path:
    return written(tmp_path / "kubeconfig", api.url)


def written(path: Path, url: str) -> Path:
    named: dict[str, Any] = {
        "clusters": [{"name": "one", "cluster": {"server": url}}],
        "users": [{"name": "one", "user": {"token": "token"}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
    }
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "one", **named}))
    return path


def node(ready: str) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": ready, "reason": "Test", "message": ""}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}, "spec": {}, "status": status}


def test_a_cluster_with_a_ready_node_is_accepted(api: FakeApi, kubeconfig: Path):
    api.put(node("True"))
    existing.check(kubeconfig)
    assert [request for request in api.requests.writes if "reviews" not in request.path] == []


def test_everything_that_is_missing_is_named_at_once(api: FakeApi, kubeconfig: Path):
    api.put(node("False"))
    api.knobs.version = "v1.28.3"
    with pytest.raises(PreconditionError, match=r"Kubernetes 1\.30 or newer, it is v1\.28\.3; a node that is Ready"):
        existing.check(kubeconfig)


def test_a_cluster_that_does_not_respond_is_named_with_its_file(tmp_path: Path):
    with pytest.raises(PreconditionError, match=r"the cluster of \S+kubeconfig cannot be used: "):
        existing.check(written(tmp_path / "kubeconfig", "http://127.0.0.1:9"))


def test_a_kubeconfig_that_is_none_is_refused(tmp_path: Path):
    (tmp_path / "kubeconfig").write_text("{}")
    with pytest.raises(PreconditionError, match="cannot be used: Invalid kube-config file"):
        existing.check(tmp_path / "kubeconfig")


def test_a_file_that_does_not_exist_is_refused_before_anything_starts(tmp_path: Path):
    result = CliRunner().invoke(main, ["up", f"--cluster={tmp_path / 'none'}"])
    assert result.exit_code == 2
    assert "there is no file" in result.output and f"`{bed.KIND}`" in result.output
