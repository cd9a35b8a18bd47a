# SPDX-License-Identifier: Apache-2.0
"""The audit log has a line for each write and delete, and nothing of what is written."""

from __future__ import annotations

import contextlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tacker import context

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube import audit
from k8s_cr_driver.kube.connection import APPLY, Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import BLUE, config_map, job, obj
from tests.instance import Instance as Session
from tests.lcm.instance import Instance
from tests.lcm.web import deployment

REQUEST = "req-8f0e2ef0-5d8a-4a43-a1f0-0000000000ff"
SECRET = obj("v1", "Secret", "login", stringData={"password": "hunter2x"})
CONFIG_MAP = "/api/v1/namespaces/default/configmaps/a"


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(json.loads(record.getMessage()))

    def results(self, path: str) -> list[tuple[str, str]]:
        return [(line["verb"], line["result"]) for line in self.found if line["object"] == path]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    logger, handler = logging.getLogger(audit.LOGGER), Lines()
    monkeypatch.setattr(logger, "level", logging.INFO)
    monkeypatch.setattr(logger, "handlers", [handler])
    logger.manager._clear_cache()  # type: ignore[attr-defined]
    return handler


def test_each_write_and_delete_of_an_operation_is_a_line(cluster: FakeApi, tmp_path: Path, lines: Lines) -> None:
    context.Context(request_id=REQUEST, tenant_id="red", is_admin=True).update_store()
    blue = Instance(cluster, tmp_path / "package", [deployment(1), config_map("a"), SECRET])
    blue.instantiate()
    blue.terminate()
    written = sorted((one.method, one.path) for one in cluster.requests.writes if "/apis/auth" not in one.path)
    assert sorted((line["verb"], line["object"]) for line in lines.found) == written
    assert lines.results(CONFIG_MAP) == [("PATCH", "accepted"), ("DELETE", "accepted")]
    assert not any(line["forced"] for line in lines.found if line["object"] == CONFIG_MAP)
    for line in lines.found:
        ids = {"project": "red", "request": REQUEST, "instance": BLUE, "operation": "operation", "cluster": cluster.url}
        assert ids.items() <= line.items()
        assert "hunter2x" not in json.dumps(line)


def test_a_write_that_replaces_fields_of_others_is_forced(cluster: FakeApi, tmp_path: Path, lines: Lines) -> None:
    cluster.put(config_map("a", a="of somebody"), manager="kubectl")
    Instance(cluster, tmp_path / "package", [deployment(1), config_map("a")]).instantiate(
        **{"adopt-existing": True, "force-conflicts": True}
    )
    assert (True, "accepted") in [(one["forced"], one["result"]) for one in lines.found if one["object"] == CONFIG_MAP]


def test_writes_to_an_adopted_object_say_so(cluster: FakeApi, tmp_path: Path, lines: Lines) -> None:
    """The first one only finds that the object exists."""
    cluster.put(config_map("a"), manager="kubectl")
    blue = Instance(cluster, tmp_path / "package", [deployment(1), config_map("a")])
    blue.instantiate(**{"adopt-existing": True})
    blue.terminate()
    found = [(one["adopted"], one["result"]) for one in lines.found if one["object"] == CONFIG_MAP]
    assert found[0] == (False, "status 409")
    assert (True, "accepted") in found[1:] and {adopted for adopted, _ in found[1:]} == {True}
    assert {one["adopted"] for one in lines.found if one["object"] != CONFIG_MAP} == {False}


def test_a_write_without_success_is_a_line_with_its_status(cluster: FakeApi, tmp_path: Path, lines: Lines) -> None:
    cluster.fail(faults.unavailable(), path="configmaps/a")
    blue = Instance(cluster, tmp_path / "package", [deployment(1), config_map("a")])
    blue.instantiate()
    assert lines.results(CONFIG_MAP) == [("PATCH", "status 503"), ("PATCH", "accepted")]


def test_what_is_never_stored_is_no_line(cluster: FakeApi, lines: Lines) -> None:
    with Connection(Endpoint(cluster.url, authorization="Bearer token")) as connection:
        connection.request("GET", "/api/v1/namespaces/default/configmaps")
        review = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {}}
        connection.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
        connection.request(
            "PATCH",
            CONFIG_MAP,
            query=[("fieldManager", "somebody"), ("dryRun", "All")],
            body=config_map("a"),
            content_type="application/apply-patch+yaml",
        )
    assert lines.found == []


def test_a_deletion_that_is_only_tried_is_not_logged(cluster: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    """A finished Job that is to be replaced: its end is forgotten before, unless its deletion is denied."""
    caplog.set_level(logging.INFO, logger=audit.LOGGER)
    controllers.run_workloads(cluster)
    for image in ("i:1", "i:2"):
        caplog.clear()
        Session(cluster.url).reconcile([job("one", image)])
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == audit.LOGGER]
    assert len([line for line in lines if line["verb"] == "DELETE" and "jobs/one" in line["object"]]) == 1


def test_a_custom_resource_with_a_field_dry_run_is_logged(cluster: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=audit.LOGGER)
    with Connection(Endpoint(cluster.url)) as connection:
        body = {**config_map("a"), "dryRun": ["All"]}
        with contextlib.suppress(DriverError):
            connection.request("PATCH", "/api/v1/namespaces/default/configmaps/a", body=body)
    assert [record.name for record in caplog.records].count(audit.LOGGER) == 1


def test_a_write_that_ends_in_an_error_nobody_expects_is_a_line(cluster: FakeApi, lines: Lines) -> None:
    with Connection(Endpoint(cluster.url)) as connection, pytest.raises(UnicodeError):
        connection.request("PATCH", CONFIG_MAP, body=config_map("a", text="\ud800"), content_type=APPLY)
    assert lines.results(CONFIG_MAP) == [("PATCH", "no response")]


def test_a_refusal_that_may_pass_is_logged_with_its_status(cluster: FakeApi, lines: Lines) -> None:
    cluster.fail(faults.unavailable())
    cluster.fail(faults.forbidden("patch"))
    with Connection(Endpoint(cluster.url)) as connection:
        for _ in range(2):
            with contextlib.suppress(DriverError):
                connection.request("PATCH", CONFIG_MAP, body=config_map("a"), content_type=APPLY)
    assert lines.results(CONFIG_MAP) == [("PATCH", "status 503"), ("PATCH", "status 403")]
