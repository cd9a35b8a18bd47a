# SPDX-License-Identifier: Apache-2.0
"""The management driver as Tacker runs it: a process, a pickle in, a pickle and one line out; over real TLS."""

from __future__ import annotations

import copy
import pickle
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.kube import threads
from k8s_cr_driver.lcm import hook
from tests.credentials.clusters import (
    HMAC_KEY,
    NAME,
    TOKEN,
    cluster_crd,
    kubeconfig_of,
    put_cluster,
    put_kubeconfig,
    put_secret,
)
from tests.credentials.web import CLOSE, HANG, Web, web
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE

SOURCE = Path(__file__).parents[2] / "mgmt" / "credential_sender"
BEARER = "receiver-token-fedcba9876543210"
PROJECT = "0f6f3a2c5a8e4ac9b1f6a0f7d2f6c9aa"


@dataclass
class Conductor:
    """Runs the script of an unpacked package as `VnfLcmDriverV2._exec_mgmt_driver_script` does."""

    api: FakeApi
    """The management cluster."""
    receiver: Web
    """That which the package names."""
    folder: Path
    options_file: Path
    vim: dict[str, Any] = field(init=False)
    metadata: dict[str, Any] = field(default_factory=dict)
    error_data: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    project: str = PROJECT
    workload: FakeApi = field(init=False)
    """The workload cluster `default/red` of the instance."""
    own_process: bool = False
    """Whether the script runs in a process of its own, which takes a second each time."""

    def __post_init__(self) -> None:
        interface = {"endpoint": self.api.url, "ssl_ca_cert": self.api.ca_cert}
        self.vim, self.settings = {"interfaceInfo": interface, "accessInfo": {}}, {"receiver": "mine", "deadline": 10}
        self.define("mine", self.receiver)

    def define(self, name: str, receiver: Web, **options: str) -> None:
        """The operator defines a receiver, whose key is HMAC_KEY."""
        folder = self.options_file.parent
        (folder / f"{name}.key").write_text(HMAC_KEY + "\n")
        (folder / f"{name}.ca").write_text(receiver.ca)
        files = {"hmac_key_file": folder / f"{name}.key", "ca_file": folder / f"{name}.ca"}
        lines = [f"{option} = {value}" for option, value in {"url": receiver.url, **files, **options}.items()]
        with self.options_file.open("a") as file:
            file.write("\n".join([f"[k8s_cr_receiver:{name}]", *lines, ""]))

    def set(self, line: str) -> None:
        """The operator sets an option of [k8s_cr]."""
        self.options_file.write_text(self.options_file.read_text().replace("[k8s_cr]\n", f"[k8s_cr]\n{line}\n", 1))

    def has_own(self, receiver: Web) -> None:
        """The package has a URL of its own, with a key in a Secret of its own."""
        put_secret(self.api, "receiver", {"key": HMAC_KEY, "token": BEARER}, "red")
        key = {"secret": "red/receiver/key"}
        self.settings = {"url": receiver.url, "ca-bundle": receiver.ca, "hmac-key": key, "deadline": 10}

    def run(self, operation: str, *, code: int = 0, **additional_params: Any) -> str:
        """Returns what stands on standard error."""
        script = self.folder / "Scripts" / "credential_sender.py"
        script.parent.mkdir(exist_ok=True)
        shutil.copy(SOURCE / script.name, script)
        script.with_suffix(".yaml").write_text(yaml.safe_dump(self.settings))
        given = copy.deepcopy(self._given(operation, additional_params))
        returned, errors = self.execute(script, given)
        self.error_data.update(returned["user_script_err_handling_data"])
        if not errors:  # Tacker stores the instance only then
            self.metadata = returned["vnf_instance"].get("metadata", {})
            if operation.endswith("_end"):  # before, the scripts of one operation share it
                self.error_data = {}
        assert bool(errors) is bool(code), errors
        return errors

    def terminate(self, **additional_params: Any) -> None:
        self.run("terminate_start", **additional_params)
        self.run("terminate_end", **additional_params)

    def execute(self, script: Path, given: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """(what the script returns, its standard error)."""
        if not self.own_process:
            return hook.respond("credential_sender", script, given)
        out = subprocess.run([sys.executable, script], input=pickle.dumps(given), capture_output=True)
        assert out.returncode == bool(out.stderr)
        return pickle.loads(out.stdout), out.stderr.decode()

    def _given(self, operation: str, additional_params: dict[str, Any]) -> dict[str, Any]:
        namespaces = {"namespaces": ["default", "red"], "namespace": "default", "kinds": [], "adopted": []}
        record = {"inventory": namespaces, "project": self.project}
        is_gone = operation == "terminate_end"
        instance = {
            "id": BLUE,
            "vimConnectionInfo": {} if is_gone else {"vim1": self.vim},
            "instantiatedVnfInfo": {} if is_gone else {"metadata": {"k8s_cr": record}},
            "metadata": self.metadata,
        }
        return {
            "operation": operation,
            "request": {"additionalParams": additional_params} if additional_params else {},
            "vnf_instance": instance,
            "grant_request": None,
            "grant_response": None,
            "tmp_csar_dir": str(self.folder),
            "user_script_err_handling_data": self.error_data,
        }


@pytest.fixture
def bare(tls_api: FakeApi, tmp_path: Path, options_file: Path) -> Iterator[Conductor]:
    """Of an instance without a workload cluster."""
    with web() as receiver:
        yield Conductor(tls_api, receiver, tmp_path, options_file)


@pytest.fixture
def bed(bare: Conductor) -> Iterator[Conductor]:
    """Of an instance with one."""
    with FakeApi(tls=True) as bare.workload:
        bare.api.put(cluster_crd())
        put_cluster(bare.api)
        put_kubeconfig(bare.api, bare.workload)
        yield bare


def test_a_kubeconfig_reaches_the_receiver_and_is_recorded(bed: Conductor) -> None:
    bed.own_process = True
    assert bed.run("instantiate_end") == ""
    [post] = bed.receiver.posts
    assert post.message["event"] == "ready" and post.message["cluster"] == NAME and TOKEN in post.message["kubeconfig"]
    assert post.message["endpoint"] == bed.workload.url
    kept = {"url": bed.receiver.url, "endpoint": bed.workload.url, "digest": post.message["digest"], "event": "ready"}
    assert bed.metadata == {"credential_sender": {"clusters": {NAME: kept}}}


def test_what_was_delivered_is_not_sent_again_unless_it_has_changed(bed: Conductor) -> None:
    bed.run("instantiate_end")
    for operation in ("scale_end", "heal_end", "change_current_package_end"):
        bed.run(operation)
    assert len(bed.receiver.posts) == 1
    bed.run("scale_end", **{"credential-sender": {"resend": True}})
    bed.run("scale_end")
    assert len(bed.receiver.posts) == 2
    put_kubeconfig(bed.api, bed.workload, token="another-token-0123456789")
    bed.run("heal_end")
    assert "another-token" in bed.receiver.posts[2].message["kubeconfig"]


def test_a_terminate_says_going_and_then_gone_although_the_vim_is_removed(bed: Conductor) -> None:
    bed.run("instantiate_end")
    sent = bed.receiver.posts[0].message
    bed.terminate()
    assert bed.receiver.events == [("ready", NAME), ("going", NAME), ("gone", NAME)]
    for post in bed.receiver.posts[1:]:
        assert post.message["kubeconfig"] == "" and post.message["digest"] == sent["digest"]
    assert bed.metadata == {}


def test_each_workload_cluster_of_the_instance_is_sent_and_no_other(bed: Conductor) -> None:
    put_cluster(bed.api, "blue")
    put_kubeconfig(bed.api, bed.workload, "blue")
    put_cluster(bed.api, "labelled-by-another", manager="somebody")
    put_cluster(bed.api, "of-another-instance", instance="8f0e2ef0-5d8a-4a43-a1f0-000000000002")
    bed.run("instantiate_end")
    assert sorted(bed.receiver.events) == [("ready", "default/blue"), ("ready", NAME)]


def test_a_cluster_that_a_change_of_package_removes_is_gone(bed: Conductor) -> None:
    bed.run("instantiate_end")
    bed.api.delete("Cluster", "default", "red")
    bed.run("change_current_package_end")
    assert bed.receiver.events[1:] == [("gone", NAME)] and bed.metadata == {}


def test_a_rolled_back_instantiate_says_gone_for_what_its_failed_try_has_delivered(bed: Conductor) -> None:
    put_cluster(bed.api, "without-kubeconfig")
    bed.settings["deadline"] = 1
    errors = bed.run("instantiate_end", code=1)
    assert "default/without-kubeconfig: its kubeconfig does not open the cluster: GET" in errors
    assert bed.metadata == {} and NAME in bed.error_data["credential_sender"]["clusters"]
    bed.run("instantiate_rollback_end")
    assert bed.receiver.events == [("ready", NAME), ("gone", NAME)]


def test_a_kubeconfig_that_does_not_open_its_cluster_is_not_sent(bed: Conductor) -> None:
    bed.settings["deadline"] = 1
    bed.workload.close()
    errors = bed.run("instantiate_end", code=1)
    assert f"{NAME}: its kubeconfig does not open the cluster" in errors and bed.receiver.posts == []


def test_a_request_overrides_settings_and_later_operations_keep_them(bed: Conductor) -> None:
    with web() as other:
        bed.define("other", other)
        bed.run("instantiate_end", **{"credential-sender": {"receiver": "other"}})
        bed.terminate()
        assert [event for event, _ in other.events] == ["ready", "going", "gone"] and bed.receiver.posts == []


def test_settings_of_a_request_that_are_no_mapping_are_refused(bed: Conductor) -> None:
    errors = bed.run("instantiate_end", code=1, **{"credential-sender": "https://a.example.com"})
    assert "additionalParams.credential-sender: must be a mapping of settings, not text" in errors


@pytest.mark.parametrize("given", ["https://a.example.com", {"deadline": "soon"}, {"receiver": 5}])
def test_an_instantiate_that_was_refused_can_be_rolled_back(bed: Conductor, given: Any) -> None:
    """The request is the same, and so are its mistakes; nothing was sent."""
    bed.run("instantiate_end", code=1, **{"credential-sender": given})
    bed.run("instantiate_rollback_end", **{"credential-sender": given})


def test_clusters_of_the_older_contract_are_found(bare: Conductor) -> None:
    with FakeApi(tls=True) as workload:
        bare.api.put(cluster_crd("v1beta1"))
        put_cluster(bare.api, version="v1beta1")
        put_kubeconfig(bare.api, workload)
        bare.run("instantiate_end")
    assert bare.receiver.events == [("ready", NAME)]


@pytest.mark.parametrize("name", ["hmac-key", "bearer-token", "client-key"])
def test_a_request_cannot_name_a_secret(bed: Conductor, name: str) -> None:
    errors = bed.run("instantiate_end", code=1, **{"credential-sender": {name: {"file": "/etc/shadow"}}})
    assert f"additionalParams.credential-sender: {name} can be set by the package only" in errors and bed.receiver.posts == []


def test_the_bearer_token_of_the_package_goes_to_no_other_server(bed: Conductor) -> None:
    bed.has_own(bed.receiver)
    bed.settings["bearer-token"] = {"secret": "red/receiver/token"}
    errors = bed.run("instantiate_end", code=1, **{"credential-sender": {"url": "https://127.0.0.1:1/"}})
    assert "is on another server than that of the package" in errors
    bed.run("instantiate_end")
    assert bed.receiver.posts[0].headers["Authorization"] == f"Bearer {BEARER}"


def test_secrets_are_read_from_secrets_of_the_management_cluster(bed: Conductor) -> None:
    bed.has_own(bed.receiver)
    bed.settings["bearer-token"] = {"secret": "red/receiver/token"}
    bed.run("instantiate_end")
    bed.run("terminate_start")
    assert {post.headers["Authorization"] for post in bed.receiver.posts} == {f"Bearer {BEARER}"}
    errors = bed.run("terminate_end", code=1)
    assert "hmac-key in Secret red/receiver/key cannot be read after the instance was terminated" in errors


@pytest.mark.parametrize(
    ("response", "warning"), [((403, {}), "status 403"), ((307, {"Location": "//["}), "redirects to another server")]
)
def test_with_warn_a_failure_is_noted_in_the_instance_and_the_operation_succeeds(
    bed: Conductor, response: tuple[int, dict[str, str]], warning: str
) -> None:
    bed.settings["on-failure"] = "warn"
    bed.receiver.responses.append(response)
    assert bed.run("instantiate_end") == ""
    assert warning in bed.metadata["credential_sender"]["warning"]
    bed.run("heal_end")
    assert "warning" not in bed.metadata["credential_sender"]


def test_what_a_user_has_written_into_the_record_fails_no_operation(bed: Conductor) -> None:
    bed.run("instantiate_end")
    bed.metadata["credential_sender"]["clusters"] |= {"red": {}, "default/../red": {}}
    for operation in ("heal_end", "terminate_start", "terminate_end"):
        assert bed.run(operation) == ""
    assert bed.receiver.events == [("ready", NAME), ("going", NAME), ("gone", NAME)]


def test_a_receiver_that_never_responds_does_not_hold_up_the_operation(bed: Conductor) -> None:
    bed.settings["deadline"] = 1
    bed.receiver.responses += [(HANG, {})] * 3
    errors = bed.run("instantiate_end", code=1)
    assert f"{NAME}: {bed.receiver.url} did not accept the event ready: no status" in errors


def test_no_secret_leaves_by_anything_but_the_message(bed: Conductor, tmp_path: Path) -> None:
    """Also where the receiver repeats it in its response."""
    bed.own_process = True
    (tmp_path / "token").write_text(BEARER)
    bed.define("token", bed.receiver, bearer_token_file=str(tmp_path / "token"))
    bed.settings["receiver"] = "token"
    bed.receiver.responses.append((400, {"X-Said": BEARER}))
    shown = bed.run("instantiate_end", code=1) + str(bed.error_data)
    bed.run("instantiate_end")
    shown += str(bed.metadata)
    for secret in (BEARER, TOKEN, HMAC_KEY):
        assert secret not in shown


def test_the_end_of_an_unknown_operation_and_unreadable_settings_are_errors(bed: Conductor) -> None:
    assert "modify_information_end: the credential sender has nothing to do there" in bed.run(
        "modify_information_end", code=1
    )
    bed.settings["dead-line"] = 5
    assert "Scripts/credential_sender.yaml: dead-line is not a setting; is it deadline?" in bed.run(
        "instantiate_end", code=1
    )


def test_a_cluster_that_has_lost_its_label_is_not_gone(bed: Conductor) -> None:
    bed.run("instantiate_end")
    bed.api.edit("Cluster", "default", "red", lambda live: live["metadata"].update(labels={}))
    bed.run("scale_end")
    assert ("gone", NAME) not in bed.receiver.events


def test_a_cluster_whose_kind_is_not_served_just_now_is_not_gone(bed: Conductor) -> None:
    bed.run("instantiate_end")
    crd = "clusters.cluster.x-k8s.io"
    bed.api.edit("CustomResourceDefinition", None, crd, lambda live: live["spec"]["versions"][0].update(served=False))
    bed.run("heal_end", code=1)
    assert ("gone", NAME) not in bed.receiver.events


def test_a_cluster_that_terminate_keeps_is_neither_going_nor_gone(bed: Conductor) -> None:
    bed.run("instantiate_end")
    keep = {"k8s-cr-driver/keep": "true"}
    bed.api.edit("Cluster", "default", "red", lambda live: live["metadata"].update(annotations=keep))
    bed.terminate()
    assert bed.receiver.events == [("ready", NAME)]


def test_gone_is_sent_although_another_cluster_does_not_open(bed: Conductor) -> None:
    bed.settings.update({"on-failure": "warn", "deadline": 2})
    bed.run("instantiate_end")
    bed.api.delete("Cluster", "default", "red")
    put_cluster(bed.api, "no-kubeconfig")
    bed.run("change_current_package_end")
    assert ("gone", NAME) in bed.receiver.events


@pytest.mark.parametrize("own_process", [True, False])
def test_the_sender_connects_only_where_the_conductor_may(bed: Conductor, own_process: bool) -> None:
    bed.own_process = own_process
    bed.options_file.write_text(bed.options_file.read_text().replace("allowed_endpoints = *", ""))
    errors = bed.run("instantiate_end", code=1)
    assert "interfaceInfo.endpoint: no connection to this host is permitted" in errors and "allowed_endpoints" in errors
    assert bed.receiver.posts == []


def test_a_kubeconfig_with_an_http_server_is_not_opened(bare: Conductor) -> None:
    """Its token would go in clear, as that of a VIM with such an endpoint."""
    bare.api.put(cluster_crd())
    put_cluster(bare.api)
    bare.settings["deadline"] = 2
    with FakeApi() as plain:
        plain.ca_cert = ""
        put_kubeconfig(bare.api, plain)
        assert "server is not https" in bare.run("instantiate_end", code=1)


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_a_vim_without_ca_is_not_verified_if_the_operator_says_so(bed: Conductor) -> None:
    del bed.vim["interfaceInfo"]["ssl_ca_cert"]
    bed.settings["deadline"] = 2
    assert "The certificate of" in bed.run("instantiate_end", code=1)
    bed.set("verify_tls_without_ca = false")
    bed.run("instantiate_end")
    assert bed.receiver.events == [("ready", NAME)]


@pytest.mark.parametrize("lost", [CLOSE, 504])
def test_gone_follows_a_kubeconfig_whose_response_was_lost(bed: Conductor, lost: int) -> None:
    bed.settings["retries"] = 0
    bed.receiver.responses.append((lost, {}))
    bed.run("instantiate_end", code=1)
    bed.run("instantiate_rollback_end")
    assert bed.receiver.events == [("ready", NAME), ("gone", NAME)]


def test_a_kubeconfig_whose_response_was_lost_is_sent_again(bed: Conductor) -> None:
    bed.settings |= {"retries": 0, "on-failure": "warn"}
    bed.receiver.responses.append((CLOSE, {}))
    for operation in ("instantiate_end", "heal_end", "scale_end"):
        bed.run(operation)
    assert bed.receiver.events == [("ready", NAME)] * 2


def test_a_receiver_that_has_certainly_nothing_holds_up_no_rollback(bed: Conductor) -> None:
    bed.settings["retries"] = 0
    bed.receiver.responses += [(404, {}), (503, {})]
    for _ in range(2):
        bed.run("instantiate_end", code=1)
    bed.define("nowhere", bed.receiver, url="https://127.0.0.1:1/")
    bed.settings["receiver"] = "nowhere"
    bed.run("instantiate_end", code=1)
    bed.run("instantiate_rollback_end")
    assert bed.receiver.events == [("ready", NAME)] * 2


def test_a_cluster_that_stays_after_all_is_ready_again(bed: Conductor) -> None:
    for operation in ("instantiate_end", "terminate_start", "heal_end", "scale_end"):
        bed.run(operation)
    assert bed.receiver.events == [("ready", NAME), ("going", NAME), ("ready", NAME)]


@pytest.fixture
def half_changed(bed: Conductor) -> Conductor:
    """Its change of package has delivered `green`, and then failed."""
    bed.run("instantiate_end")
    bed.settings["deadline"] = 2
    put_cluster(bed.api, "green")
    put_kubeconfig(bed.api, bed.workload, "green")
    put_cluster(bed.api, "without-kubeconfig")
    bed.run("change_current_package_end", code=1)
    bed.settings["deadline"] = 10
    return bed


@pytest.mark.parametrize("operation", ["change_current_package_rollback_end", "scale_rollback_end"])
def test_gone_follows_the_rollback_of_what_a_failed_operation_has_delivered(half_changed: Conductor, operation: str) -> None:
    for name in ("green", "without-kubeconfig"):
        half_changed.api.delete("Cluster", "default", name)
    half_changed.run(operation)
    assert half_changed.receiver.events == [("ready", NAME), ("ready", "default/green"), ("gone", "default/green")]


def test_gone_follows_a_terminate_after_a_failed_operation_that_was_given_up(half_changed: Conductor) -> None:
    half_changed.error_data = {}
    half_changed.terminate()
    assert ("gone", "default/green") in half_changed.receiver.events and ("gone", NAME) in half_changed.receiver.events
    assert not [event for event in half_changed.receiver.events if event[1] == "default/without-kubeconfig"]
    assert half_changed.metadata == {}


def test_the_kubeconfig_that_is_sent_is_written_by_the_sender(bed: Conductor) -> None:
    """Whoever may write the Secret would have the user's kubectl run a program."""
    content = yaml.safe_load(kubeconfig_of(bed.workload))
    content["users"].append({"name": "evil", "user": {"exec": {"command": "evil"}}})
    put_secret(bed.api, "red-kubeconfig", {"value": yaml.safe_dump({**content, "extensions": ["evil"]})})
    assert bed.run("instantiate_end") == ""
    [post] = bed.receiver.posts
    sent = yaml.safe_load(post.message["kubeconfig"])
    assert [sent[f"{kind}s"][0]["name"] for kind in ("cluster", "user", "context")] == ["red", "red-admin", "red-admin@red"]
    assert sent["users"][0]["user"] == {"token": TOKEN} and "evil" not in post.message["kubeconfig"]


@pytest.mark.parametrize(("section", "field", "value"), [
    ("cluster", "insecure-skip-tls-verify", True),
    ("cluster", "insecure-skip-tls-verify", "false"),
    ("cluster", "proxy-url", "http://127.0.0.1:3128"),
    ("user", "as", "admin"),
    ("user", "exec", {"command": "evil"}),
])  # fmt: skip
def test_a_kubeconfig_with_more_than_a_cluster_and_credentials_is_not_sent(
    bed: Conductor, section: str, field: str, value: Any
) -> None:
    content = yaml.safe_load(kubeconfig_of(bed.workload))
    content[f"{section}s"][0][section][field] = value
    put_secret(bed.api, "red-kubeconfig", {"value": yaml.safe_dump(content)})
    assert field in bed.run("instantiate_end", code=1) and bed.receiver.posts == []


def test_many_clusters_are_opened_by_a_few_threads(bed: Conductor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("k8s_cr_driver.credentials.opening.THREADS", 3)
    started: list[str] = []
    start = threads.start

    def counting(target: Callable[[], None], name: str) -> threading.Thread:
        started.append(name)
        return start(target, name)

    monkeypatch.setattr(threads, "start", counting)
    text = kubeconfig_of(bed.workload)
    for name in "abcdefghi":
        put_cluster(bed.api, name)
        put_secret(bed.api, f"{name}-kubeconfig", {"value": text})
    assert bed.run("instantiate_end") == ""
    assert len(bed.receiver.posts) == 10 and sum(name.startswith("open ") for name in started) == 3


def test_silent_clusters_keep_no_other_waiting(bed: Conductor) -> None:
    """Two of them: each could use all the time that one leaves."""
    with socket.create_server(("127.0.0.1", 0)) as silent, FakeApi(tls=True) as other:
        text = kubeconfig_of(other).replace(other.url, f"https://127.0.0.1:{silent.getsockname()[1]}")
        for name in ("a", "b"):
            put_cluster(bed.api, name)
            put_secret(bed.api, f"{name}-kubeconfig", {"value": text})
        bed.settings["deadline"] = 3
        errors = bed.run("instantiate_end", code=1)
    assert "its kubeconfig does not open the cluster: GET /api/v1/namespaces: " in errors and "(and 1 more)" in errors
    assert bed.receiver.events == [("ready", NAME)]
    assert list(bed.error_data["credential_sender"]["clusters"]) == [NAME]


@pytest.mark.parametrize("echo", [TOKEN[::-1], f"{TOKEN[:9]} {TOKEN[9:]}", TOKEN.upper()])
def test_nothing_that_a_workload_cluster_says_reaches_the_error(bed: Conductor, echo: str) -> None:
    """It has the token, and could repeat it in any form."""
    bed.settings["deadline"] = 2
    bed.workload.fail(faults.status(422, "Invalid", f"you have sent {echo}"))
    errors = bed.run("instantiate_end", code=1)
    assert "GET /api/v1/namespaces: 422 Unprocessable Entity" in errors and echo not in errors


def test_a_request_cannot_have_the_conductor_send_to_any_address(bed: Conductor) -> None:
    bed.has_own(bed.receiver)
    bed.options_file.write_text("[k8s_cr]\nallowed_endpoints = *\nallowed_receivers = *.example.com, localhost\n")
    bed.settings["retries"] = 0
    for host in ("127.0.0.1", "localhost"):
        url = bed.receiver.url.replace("127.0.0.1", host)
        errors = bed.run("instantiate_end", code=1, **{"credential-sender": {"url": url}})
        assert "permitted" in errors and "allowed_receivers" in errors
        assert bed.receiver.posts == [] and "clusters" not in bed.error_data["credential_sender"]
    bed.options_file.write_text("[k8s_cr]\nallowed_endpoints = *\nallowed_receivers = 127.0.0.0/8\n")
    bed.run("instantiate_end", **{"credential-sender": {"url": bed.receiver.url}})
    assert bed.receiver.events == [("ready", NAME)]


def test_http_that_an_earlier_request_has_allowed_is_forgotten(bed: Conductor) -> None:
    bed.has_own(bed.receiver)
    kept = {"url": bed.receiver.url.replace("https", "http"), "allow-insecure": True}
    bed.metadata = {"credential_sender": {"settings": kept}}
    assert "url must be https" in bed.run("heal_end", code=1)
    bed.run("heal_end", **{"credential-sender": {"url": bed.receiver.url}})
    assert bed.receiver.events == [("ready", NAME)]


def test_settings_of_a_request_are_kept_until_there_is_a_cluster(bare: Conductor) -> None:
    bare.api.put(cluster_crd())
    with web() as other, FakeApi(tls=True) as workload:
        bare.define("other", other)
        bare.run("instantiate_end", **{"credential-sender": {"receiver": "other"}})
        put_cluster(bare.api)
        put_kubeconfig(bare.api, workload)
        bare.run("change_current_package_end")
        bare.terminate()
        assert [event for event, _ in other.events] == ["ready", "going", "gone"] and bare.receiver.posts == []
    assert bare.metadata == {}


def test_a_cluster_that_is_unreachable_from_here_is_sent_unopened(bed: Conductor) -> None:
    def annotate(live: dict[str, Any]) -> None:
        live["metadata"]["annotations"] = {"k8s-cr-driver/unreachable": "true"}

    bed.api.edit("Cluster", "default", "red", annotate)
    bed.run("instantiate_end")
    assert bed.receiver.events == [("ready", NAME)] and not bed.workload.requests


def test_a_terminate_that_abandons_the_instance_needs_no_management_cluster(bed: Conductor) -> None:
    bed.run("instantiate_end")
    with bed.api.down():
        bed.terminate(abandon=True)
    assert [event for event, _ in bed.receiver.events] == ["ready", "going", "gone"]


@pytest.mark.parametrize("path", ["/clusters$", "/clusters"])
def test_an_account_that_may_not_list_clusters_or_read_them_names_those_that_were_delivered(bed: Conductor, path: str) -> None:
    """A role without `list` is one without `get`, too."""
    bed.run("instantiate_end")
    bed.api.fail(faults.status(403, "Forbidden"), method="GET", path=path, times=99)
    bed.terminate()
    assert bed.receiver.events == [("ready", NAME), ("going", NAME), ("gone", NAME)]


@pytest.mark.parametrize(("path", "why"), [("/clusters$", "403"), ("/secrets/", "")])
def test_a_terminate_warns_that_it_may_not_look_for_what_a_failed_operation_has_delivered(
    half_changed: Conductor, path: str, why: str
) -> None:
    half_changed.error_data = {}
    half_changed.api.fail(faults.status(403, "Forbidden"), method="GET", path=path, times=9)
    half_changed.terminate()
    assert half_changed.receiver.events[2:] == [("going", NAME), ("gone", NAME)]
    warning = half_changed.metadata["credential_sender"]["warning"]
    assert "the receiver is not told of clusters that a failed operation has delivered" in warning and why in warning


def test_what_a_terminate_may_not_look_for_is_named_beside_what_was_not_delivered(half_changed: Conductor) -> None:
    half_changed.settings |= {"on-failure": "warn", "retries": 0}
    half_changed.error_data = {}
    half_changed.api.fail(faults.status(403, "Forbidden"), method="GET", path="/clusters$", times=9)
    half_changed.receiver.responses.append((403, {}))
    half_changed.run("terminate_start")
    warning = half_changed.metadata["credential_sender"]["warning"]
    assert "did not accept the event going: status 403" in warning and "the receiver is not told of clusters" in warning


def test_a_terminate_tells_of_clusters_whose_kind_is_gone(bed: Conductor) -> None:
    bed.run("instantiate_end")
    bed.api.delete("Cluster", "default", "red")
    bed.api.delete("CustomResourceDefinition", None, "clusters.cluster.x-k8s.io")
    bed.run("terminate_start")
    assert bed.receiver.events == [("ready", NAME), ("going", NAME)]


def test_an_error_of_settings_that_an_earlier_request_has_given_names_them(bed: Conductor) -> None:
    bed.has_own(bed.receiver)
    with web() as other:
        bed.run("instantiate_end", **{"credential-sender": {"url": other.url, "ca-bundle": other.ca}})
        bed.settings["bearer-token"] = {"secret": "red/receiver/token"}
        errors = bed.run("change_current_package_end", code=1)
    assert "url is on another server" in errors and "an earlier request has given ca-bundle, url" in errors


def test_an_instance_without_metadata_gets_the_record(bed: Conductor) -> None:
    bed.metadata = None  # type: ignore[assignment]
    bed.run("instantiate_end")
    assert NAME in bed.metadata["credential_sender"]["clusters"]


# Nothing of the conductor's host or of other namespaces leaves by a package's wish


@pytest.mark.parametrize("name", ["hmac-key", "bearer-token", "client-key"])
def test_no_file_of_the_conductors_host_leaves_because_a_package_names_it(bed: Conductor, tmp_path: Path, name: str) -> None:
    (tmp_path / "private").write_text(BEARER + HMAC_KEY)
    (tmp_path / "private").chmod(0o600)
    bed.has_own(bed.receiver)
    certificate = {"client-certificate": {"secret": "red/receiver/key"}} if name == "client-key" else {}
    bed.settings |= {name: {"file": str(tmp_path / "private")}, **certificate}
    errors = bed.run("instantiate_end", code=1)
    assert f"Scripts/credential_sender.yaml: {name} names a file on the conductor's host" in errors and bed.receiver.posts == []


@pytest.mark.parametrize(
    ("namespace", "line", "rule"),
    [
        ("kube-system", "", "the namespace kube-system is that"),
        ("kube-system", "restrict_tenants = false", "the namespace kube-system is that"),
        ("kube-public", "", "[k8s_cr] restrict_tenants"),
        ("default", "", "the namespace default is that of the cluster or of the driver's inventories"),
        ("journal", "inventory_namespace = journal", "the namespace journal is that"),
        ("green", "", "[k8s_cr] restrict_tenants"),
        ("green", "denied_namespaces = green\nrestrict_tenants = false", "[k8s_cr] denied_namespaces"),
        ("green", "allowed_namespaces = red*\nrestrict_tenants = false", "[k8s_cr] allowed_namespaces"),
        ("green", "denied_kinds = Secret\nrestrict_tenants = false", "[k8s_cr] denied_kinds"),
        ("green", f"[k8s_cr:{PROJECT}]\nallowed_namespaces = red", f"[k8s_cr:{PROJECT}] allowed_namespaces"),
        ("green", f"[k8s_cr:{BLUE}]\ndenied_namespaces = green", f"[k8s_cr:{BLUE}] denied_namespaces"),
    ],
)
def test_no_secret_of_others_leaves_because_a_package_names_it(bed: Conductor, namespace: str, line: str, rule: str) -> None:
    bed.vim["vimId"] = BLUE
    bed.has_own(bed.receiver)
    put_secret(bed.api, "admin", {"token": BEARER}, namespace)
    bed.settings["hmac-key"] = {"secret": f"{namespace}/admin/token"}
    if line.startswith("["):
        bed.options_file.write_text(f"{bed.options_file.read_text()}{line}\n")
    else:
        bed.set(line)
    errors = bed.run("instantiate_end", code=1)
    assert "the operator does not allow" in errors and f"/admin/token ({rule}" in errors and bed.receiver.posts == []


def test_no_url_of_a_package_is_allowed_unless_the_operator_lists_its_host(bed: Conductor) -> None:
    bed.has_own(bed.receiver)
    bed.options_file.write_text("[k8s_cr]\nallowed_endpoints = *\n")
    for project in ("another-project", ""):
        errors = bed.run("instantiate_end", code=1)
        assert f"{bed.receiver.url}: no connection to this host is permitted for a package" in errors
        assert bed.receiver.posts == []
        with bed.options_file.open("a") as file:
            file.write(f"[k8s_cr:{project}]\nallowed_receivers = *\n")
    with bed.options_file.open("a") as file:
        file.write(f"[k8s_cr:{PROJECT}]\nallowed_receivers = 127.0.0.0/8\n")
    bed.run("instantiate_end")
    assert bed.receiver.events == [("ready", NAME)]


def test_the_operators_secrets_go_to_the_operators_url_only(bed: Conductor, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(BEARER)
    bed.define("token", bed.receiver, bearer_token_file=str(tmp_path / "token"))
    with web() as other:
        bed.settings["receiver"] = "token"
        place = {"url": other.url, "ca-bundle": other.ca}
        assert "hmac-key is missing" in bed.run("instantiate_end", code=1, **{"credential-sender": place})
        bed.settings |= place
        assert "url stands beside receiver" in bed.run("instantiate_end", code=1)
        bed.has_own(other)
        bed.run("instantiate_end", **{"credential-sender": {"receiver": "token"}})
        assert bed.receiver.posts[0].headers["Authorization"] == f"Bearer {BEARER}" and other.posts == []
        bed.run("heal_end", **{"credential-sender": {"url": other.url, "resend": True}})
        assert other.events == [("ready", NAME)] and "Authorization" not in other.posts[0].headers


def test_a_receiver_is_for_the_projects_that_the_operator_names(bed: Conductor) -> None:
    bed.define("theirs", bed.receiver, projects=f"another,{PROJECT}")
    bed.settings["receiver"] = "theirs"
    bed.project = "a-third"
    refused = "receiver theirs: the operator has defined none of this name for the project of the instance"
    assert refused in bed.run("instantiate_end", code=1)
    bed.settings["receiver"] = "nobodys"
    assert refused.replace("theirs", "nobodys") in bed.run("instantiate_end", code=1)
    bed.settings["receiver"], bed.project = "theirs", PROJECT
    for operation in ("instantiate_end", "terminate_start", "terminate_end"):
        bed.run(operation)
    assert [event for event, _ in bed.receiver.events] == ["ready", "going", "gone"]


def test_the_project_of_a_terminated_instance_is_not_what_a_user_has_written_into_it(bed: Conductor) -> None:
    bed.define("theirs", bed.receiver, projects="another")
    bed.run("instantiate_end")
    bed.metadata["credential_sender"] |= {"project": "another", "settings": {"receiver": "theirs"}}
    assert "receiver theirs: the operator has defined none" in bed.run("terminate_end", code=1)


def test_each_message_is_signed_with_a_key_of_project_and_instance(bed: Conductor) -> None:
    for operation in ("instantiate_end", "terminate_start", "terminate_end"):
        bed.run(operation)
    for post in bed.receiver.posts:
        assert post.headers[envelope.SENDER_HEADER] == f"{PROJECT}/{BLUE}"
        assert envelope.is_signed(HMAC_KEY.encode(), post.headers, post.body, int(post.headers[envelope.TIME_HEADER]))
    assert len(bed.receiver.posts) == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hmac_key_file": "/nowhere/private.key"}, "hmac-key in [k8s_cr_receiver:bad] hmac_key_file: No such file"),
        ({"hmac_key_file": ""}, "[k8s_cr_receiver:bad] hmac_key_file: is missing"),
        ({"ca_file": "/nowhere/private.ca"}, "[k8s_cr_receiver:bad] ca_file: cannot be read"),
        ({"url": "http://127.0.0.1/"}, "[k8s_cr_receiver:bad] url: must be an https URL"),
        ({"url": "$my_url"}, "a management driver cannot read the conductor's options"),
    ],
)
def test_what_is_wrong_with_a_receiver_names_its_option_and_no_place_on_the_host(
    bed: Conductor, options: dict[str, str], problem: str
) -> None:
    bed.define("bad", bed.receiver, **options)
    bed.settings["receiver"] = "bad"
    errors = bed.run("instantiate_end", code=1)
    assert problem in errors and "/nowhere" not in errors and bed.receiver.posts == []


def test_an_instance_of_an_earlier_driver_goes_on_with_a_receiver_of_a_request(bed: Conductor, tmp_path: Path) -> None:
    bed.settings = {"url": bed.receiver.url, "ca-bundle": bed.receiver.ca, "hmac-key": {"file": str(tmp_path / "mine.key")}}
    bed.metadata = {"credential_sender": {"settings": {"url": bed.receiver.url}}}
    bed.run("heal_end", **{"credential-sender": {"receiver": "mine"}})
    bed.terminate()
    assert [event for event, _ in bed.receiver.events] == ["ready", "going", "gone"] and bed.metadata == {}
