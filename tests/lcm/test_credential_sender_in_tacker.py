# SPDX-License-Identifier: Apache-2.0
"""The script of a package, run by Tacker's own code with Tacker's own objects."""

from __future__ import annotations

import datetime
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.common.vnfd_utils import Vnfd
from tacker.sol_refactored.conductor.vnflcm_driver_v2 import VnfLcmDriverV2

from k8s_cr_driver.credentials.management import ManagementCluster
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.lcm import hook
from tests.cli.packages import write_package
from tests.credentials.clusters import HMAC_KEY, NAME, TOKEN, cluster_crd, put_cluster, put_kubeconfig
from tests.credentials.web import Web, web
from tests.fake_api import FakeApi, defaults
from tests.instance import BLUE, config_map, obj, restored
from tests.lcm.instance import Instance
from tests.lcm.web import deployment

SENDER = Path(__file__).parents[2] / "mgmt" / "credential_sender"


@pytest.fixture
def receiver() -> Iterator[Web]:
    with web() as one:
        yield one


@pytest.fixture
def vnfd(receiver: Web, tmp_path: Path, options_file: Path) -> Vnfd:
    """A package that follows the README."""
    folder = write_package(tmp_path / "package", [config_map("a")])
    [fragment] = re.findall(r"```yaml\n(.*?)```", (SENDER / "README.md").read_text(), re.S)
    path = folder / "Definitions" / "vnfd.yaml"
    content = yaml.safe_load(path.read_text())
    content["topology_template"]["node_templates"] = yaml.safe_load(fragment)["topology_template"]["node_templates"]
    path.write_text(yaml.safe_dump(content))
    (folder / "Scripts").mkdir()
    shutil.copy(SENDER / "credential_sender.py", folder / "Scripts")
    (tmp_path / "hmac.key").write_text(HMAC_KEY)
    (tmp_path / "ca.crt").write_text(receiver.ca)
    with options_file.open("a") as file:
        file.write(f"[k8s_cr_receiver:mine]\nurl = {receiver.url}\n")
        file.write(f"ca_file = {tmp_path}/ca.crt\nhmac_key_file = {tmp_path}/hmac.key\n")
    (folder / "Scripts" / "credential_sender.yaml").write_text(yaml.safe_dump({"receiver": "mine", "deadline": 20}))
    found = Vnfd("1")
    found.init_from_csar_dir(str(folder))
    return found


@pytest.fixture
def instance(tls_api: FakeApi, options_file: Path) -> Iterator[Any]:
    vim = {
        "vimType": "ETSINFV.KUBERNETES.V_1",
        "vimId": BLUE,
        "interfaceInfo": {"endpoint": tls_api.url, "ssl_ca_cert": tls_api.ca_cert},
        "accessInfo": {"bearer_token": "token"},
    }
    info = {"flavourId": "simple", "vnfState": "STARTED", "metadata": {"namespace": "default"}}
    content = {"id": BLUE, "vimConnectionInfo": {"vim1": vim}, "instantiatedVnfInfo": info, "metadata": {"of": "the user"}}
    with FakeApi(tls=True) as workload:
        tls_api.put(cluster_crd())
        put_cluster(tls_api)
        put_kubeconfig(tls_api, workload)
        yield objects.VnfInstanceV2.from_dict(content)


def run(operation: str, instance: Any, vnfd: Vnfd, error_data: dict[str, Any]) -> None:
    request = objects.HealVnfRequest.from_dict({})
    driver = object.__new__(VnfLcmDriverV2)
    driver._exec_mgmt_driver_script(operation, "simple", request, instance, None, None, vnfd, error_data)


def test_tacker_runs_the_script_and_stores_what_was_delivered(instance: Any, vnfd: Vnfd, receiver: Web) -> None:
    before = instance.to_dict()
    run("instantiate_end", instance, vnfd, {})
    after = instance.to_dict()
    assert list(after["metadata"].pop("credential_sender")["clusters"]) == [NAME]
    assert after == before, "nothing else of the instance has changed"
    run("terminate_start", instance, vnfd, {})
    instance.vimConnectionInfo = {}
    instance.instantiatedVnfInfo = objects.VnfInstanceV2_InstantiatedVnfInfo(flavourId="simple", vnfState="STOPPED")
    run("terminate_end", instance, vnfd, {})
    assert receiver.events == [("ready", NAME), ("going", NAME), ("gone", NAME)]
    assert instance.to_dict()["metadata"] == {"of": "the user"}


def test_a_failure_is_one_line_of_the_problem_details_without_a_secret(
    instance: Any, vnfd: Vnfd, receiver: Web, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.responses.append((403, {}))
    error_data: dict[str, Any] = {}
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as raised:
        run("heal_end", instance, vnfd, error_data)
    detail = raised.value.make_problem_details()["detail"]
    assert detail == (
        f"heal_end failed: b'credential_sender: {NAME}: {receiver.url} did not accept the event ready: status 403 (attempt 1)'"
    )
    for secret in (TOKEN, HMAC_KEY):
        assert secret not in caplog.text + detail + str(error_data)


def test_the_clusters_of_an_instance_are_found_as_this_driver_has_created_them(
    cluster: FakeApi, tmp_path: Path, options_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a namespace of the package, which is in the driver's record of the instance."""
    manifest = obj("cluster.x-k8s.io/v1beta2", "Cluster", "red", namespace="blue", spec={})
    manifest["metadata"]["annotations"] = {"k8s-cr-driver/unreachable": "true"}
    with options_file.open("a") as file:
        file.write("allow_http_endpoints = true\n")
    blue = Instance(cluster, tmp_path, [deployment(1), obj("v1", "Namespace", "blue"), cluster_crd(), manifest])
    blue.instantiate()
    call = hook.Call("instantiate_end", tmp_path, {}, blue.inst.to_dict(), {})
    endpoint = call.endpoint()
    assert endpoint is not None and sorted(call.namespaces()) == ["blue", "default"]
    with Connection(endpoint) as connection:
        assert ManagementCluster(connection).clusters(BLUE, call.namespaces()) == ["blue/red"]
        later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        monkeypatch.setattr(defaults, "now", lambda: later.strftime("%Y-%m-%dT%H:%M:%SZ"))
        restored(cluster, cluster.get("Cluster", "blue", "red"), "blue")  # a copy, with the kubeconfig of another cluster
        management = ManagementCluster(connection)
        assert management.clusters(BLUE, call.namespaces()) == ["blue/red"]
        assert not management.exists("blue/copy", BLUE)
