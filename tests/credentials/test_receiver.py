# SPDX-License-Identifier: Apache-2.0
"""The receiver over real TLS: what it stores, what it refuses, and what stays after a crash."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from k8s_cr_driver.credentials import envelope, post, receiver, store
from k8s_cr_driver.credentials.envelope import Envelope
from k8s_cr_driver.credentials.post import NotDelivered
from k8s_cr_driver.credentials.receiver import Gate, Receiver
from k8s_cr_driver.credentials.secrets import Secrets
from k8s_cr_driver.credentials.settings import Settings
from k8s_cr_driver.credentials.store import Store, Stored
from k8s_cr_driver.errors import InvalidRequest
from tests.credentials.messages import READY, SENT, STORED, later
from tests.credentials.web import wait_until
from tests.fake_api.tls import server_certificate
from tests.hostile import TEXTS, assert_harmless
from tests.instance import BLUE, GREEN, RED

KEY = b"0123456789abcdef0123456789abcdef"
TOKEN = "receiver-token-fedcba9876543210"
SENDER = f"red/{BLUE}"
NAME = f"{BLUE}_default_red"
GATE = Gate(KEY, TOKEN)


@dataclass
class Running:
    """A receiver on a port, and its clients."""

    folder: Path
    url: str
    ca: str
    chain: bytes
    accepted: list[Stored] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def stored(self) -> Path:
        return self.folder / f"{NAME}.kubeconfig"

    @property
    def port(self) -> int:
        return urllib3.util.parse_url(self.url).port

    def connected(self) -> ssl.SSLSocket:
        """A client that has made its TLS handshake."""
        context = ssl.create_default_context(cadata=self.ca)
        client = context.wrap_socket(socket.create_connection(("127.0.0.1", self.port)), server_hostname="127.0.0.1")
        client.settimeout(30)
        return client

    def send(self, message: Envelope, **secrets: Any) -> None:
        given = Secrets(**{"hmac_key": KEY, "bearer_token": TOKEN, **secrets})
        with post.poster(Settings(self.url, {}, ca_bundle=self.ca), given, time.monotonic() + 30) as poster:
            poster.post(message)

    def post(self, body: bytes, **headers: str) -> int:
        """The status of the response to a request that no sender of ours makes."""
        pool = urllib3.PoolManager(ca_cert_data=self.ca, retries=False)
        signed = {"Authorization": f"Bearer {TOKEN}", **envelope.signed(KEY, SENDER, body, time.time())}
        return pool.request("POST", self.url, body=body, headers={**signed, **headers}).status


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with started(tmp_path) as one:
        yield one


@contextlib.contextmanager
def started(folder: Path, gate: Gate = GATE, *, client_ca: bool = False) -> Iterator[Running]:
    """Which demands certificates of clients with `client_ca`, of the CA of its own."""
    chain, ca = server_certificate()
    (folder / "server.pem").write_bytes(chain)
    (folder / "ca.pem").write_text(ca)
    one = Running(folder / "received", "", ca, chain)
    context = receiver.tls_context(*[str(folder / "server.pem")] * 2, str(folder / "ca.pem") if client_ca else "")
    with Receiver(("127.0.0.1", 0), context, gate, Store(one.folder), one.accepted.append, one.log.append) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        one.url = f"https://127.0.0.1:{server.server_address[1]}/"
        yield one
        server.shutdown()


def test_a_kubeconfig_is_stored_for_its_user_alone_before_the_response(running: Running) -> None:
    running.send(READY)
    assert running.stored.read_text() == STORED
    assert {stat.S_IMODE(path.stat().st_mode) for path in running.folder.iterdir()} == {0o600}
    assert stat.S_IMODE(running.folder.stat().st_mode) == 0o700
    assert [one.last for one in running.accepted] == [replace(READY, kubeconfig="")]
    assert "secret" not in (running.folder / f"{NAME}.json").read_text() + str(running.log)
    assert running.log == [f"127.0.0.1: 204, ready default/red of VNF instance {BLUE}"]


def test_the_kubeconfig_stays_while_its_cluster_is_going_and_is_removed_when_it_is_gone(running: Running) -> None:
    running.send(READY)
    running.send(going := later(READY, "going"))
    assert running.stored.exists()
    running.send(later(going, "gone"))
    assert not running.stored.exists()


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_that_clients_send_writes_a_line_of_the_log(running: Running, text: str) -> None:
    whole = asdict(READY)
    bodies: list[Any] = [text, {**whole, text: text}, *({**whole, name: text} for name in whole)]
    forged = yaml.safe_load(SENT)
    for part in ("clusters", "users", "contexts"):
        forged[part][0]["name"] = text
    texts = (text, yaml.safe_dump({**forged, "current-context": text}), yaml.safe_dump({text: text}))
    bodies += [{**whole, "kubeconfig": one, "digest": envelope.digest(one)} for one in texts]
    for body in bodies:
        running.post(json.dumps(body).encode())
    sent, body = text.encode(), READY.body()
    headers = {"Authorization": f"Bearer {TOKEN}", **envelope.signed(KEY, SENDER, body, time.time())}
    requests = [(b"POST /" + sent, name, b"a") for name in ("Host",)] + [(sent + b" / ", "Host", b"a")]
    requests += [(b"POST /", name, sent) for name in (*headers, "Content-Length", "Host")] + [(b"POST /", text, b"a")]
    for line, name, value in requests:
        lines = [line + b" HTTP/1.1", *(f"{key}: {given}".encode() for key, given in headers.items() if key != name)]
        lines += [name.encode() + b": " + value, *([] if name == "Content-Length" else [b"Content-Length: %d" % len(body)])]
        with contextlib.suppress(OSError), running.connected() as client:
            client.sendall(b"\r\n".join([*lines, b"", body]))
            client.recv(1024)
    assert len(running.log) >= len(bodies)
    for line_of_log in running.log:
        assert "\n" not in line_of_log
        assert_harmless(line_of_log)


def test_a_message_that_comes_again_changes_nothing_and_an_older_one_is_refused(running: Running) -> None:
    gone = later(READY, "gone")
    for message in (READY, READY, gone, gone):
        running.send(message)
    with pytest.raises(NotDelivered, match="status 409"):
        running.send(READY)
    assert not running.stored.exists()


def test_who_has_not_the_token_or_the_key_is_refused(running: Running) -> None:
    for secrets, status in (
        ({"bearer_token": ""}, 401),
        ({"bearer_token": TOKEN[:-1]}, 401),
        ({"hmac_key": KEY[::-1]}, 403),
    ):
        with pytest.raises(NotDelivered, match=f"status {status}"):
            running.send(READY, **secrets)
    assert list(running.folder.iterdir()) == [] and running.accepted == []


def test_a_signature_of_another_time_is_refused(running: Running) -> None:
    body = READY.body()
    for off in (-envelope.WINDOW - 2, envelope.WINDOW + 2):
        assert running.post(body, **envelope.signed(KEY, SENDER, body, time.time() + off)) == 403
    assert running.post(body) == 204


def test_a_key_that_is_made_for_one_instance_signs_for_no_other(running: Running) -> None:
    """Not for the VIM of another tenant, although the receiver is that of both."""
    other = f"{BLUE[:-1]}0"
    body = replace(READY, vnfInstanceId=other).body()
    assert running.post(body) == 403 and "the key of the signature is that of another VNF instance" in running.log[-1]
    assert running.post(body, **{envelope.SENDER_HEADER: f"red/{other}"}) == 403, "the signature is that of another sender"
    assert running.post(body, **envelope.signed(KEY, f"red/{other}", body, time.time())) == 204


def test_a_body_that_is_none_or_too_large_is_refused(running: Running) -> None:
    assert running.post(b"{}") == 400
    assert running.post(json.dumps({**json.loads(READY.body()), "cluster": "../../etc"}).encode()) == 400
    assert running.post(b"", **{"Content-Length": "none"}) == 411
    for length in (str(receiver.BODY_LIMIT + 1), "9" * 5000):
        assert running.post(b"", **{"Content-Length": length}) == 413


def test_a_message_that_cannot_be_stored_is_no_success(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert running.post(READY.body()) == 500
    assert not running.stored.exists() and running.accepted == []
    assert running.log == ["127.0.0.1: 500, not stored: No space left on device"]


def test_everything_is_synced_before_the_response(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    running.send(READY)
    files = [f".{NAME}.kubeconfig.new", running.folder.name, f".{NAME}.json.new", running.folder.name]
    assert synced[:4] == files


def test_with_a_ca_for_clients_their_certificate_is_enough(tmp_path: Path) -> None:
    with started(tmp_path, Gate(KEY), client_ca=True) as one:
        one.send(READY, bearer_token="", client_certificate=one.chain.decode())
        assert one.stored.exists()
        stranger = server_certificate()[0].decode()
        for certificate in ("", stranger):
            with pytest.raises(NotDelivered, match="no status"):
                one.send(READY, bearer_token="", client_certificate=certificate)
        assert len(one.accepted) == 1


def test_silent_clients_keep_nobody_else_waiting(running: Running) -> None:
    silent = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(10)]
    running.send(READY)
    for one in silent:
        one.close()
    wait_until(lambda: len(running.log) == 11)


def test_a_silent_client_holds_its_connection_for_a_limited_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "CONNECTIONS", 1)
    monkeypatch.setattr(receiver, "PATIENCE", 0.3)
    with started(tmp_path) as one, socket.create_connection(("127.0.0.1", one.port)):
        one.send(READY)
        assert one.log[0] == "127.0.0.1: no response, TimeoutError"
        assert one.log[-1] == f"127.0.0.1: 204, ready default/red of VNF instance {BLUE}"


def test_a_client_that_drips_holds_its_connection_for_a_limited_time(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "LIFETIME", 0.3, raising=False)
    unsecured, secured = socket.create_connection(("127.0.0.1", running.port)), running.connected()
    secured.sendall(b"POST / HTTP/1.1\r\nX-Slow: ")
    unsecured.sendall(b"\x16\x03\x01\x02\x00")

    def are_closed() -> bool:
        for client in (unsecured, secured):
            with contextlib.suppress(OSError):
                client.sendall(b"x")
        return not any("process_request_thread" in thread.name for thread in threading.enumerate())

    wait_until(are_closed, 20)
    unsecured.close()
    secured.close()


def test_silent_clients_of_one_address_leave_places_for_others(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "HEAD_WITHIN", 30)
    address = ("127.0.0.1", running.port)
    silent = [socket.create_connection(address, source_address=("127.0.0.2", 0)) for _ in range(receiver.CONNECTIONS)]
    running.send(READY)
    assert running.log == [f"127.0.0.1: 204, ready default/red of VNF instance {BLUE}"]
    for one in silent:
        one.close()


def test_a_client_holds_its_connection_for_a_shorter_time_until_its_headers_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "EACH", 2)
    monkeypatch.setattr(receiver, "HEAD_WITHIN", 2.0)
    with started(tmp_path) as one, contextlib.ExitStack() as silent:
        for _ in range(2):
            silent.enter_context(socket.create_connection(("127.0.0.1", one.port)))
        one.send(READY)
        assert len(one.log) >= 3 and one.log[-1].startswith("127.0.0.1: 204")


def test_a_client_that_sends_no_body_is_timed_out(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    accept = receiver._Handler._accept

    def impatient(handler: receiver._Handler) -> str:
        """The headers are there, however long that has taken."""
        handler.connection.settimeout(0.3)
        return accept(handler)

    monkeypatch.setattr(receiver._Handler, "_accept", impatient)
    with running.connected() as client:
        client.sendall(f"POST / HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\nxx".encode())
        assert client.recv(100).startswith(b"HTTP/1.0 408")
    assert running.log == ["127.0.0.1: 408, refused: the body has not arrived for 10 seconds"]
    assert receiver._Handler.timeout == receiver.PATIENCE == 10


def test_without_the_token_little_of_a_body_is_read(running: Running) -> None:
    with running.connected() as client:
        head = f"POST / HTTP/1.1\r\nContent-Length: {receiver.BODY_LIMIT}\r\n\r\n"
        client.sendall(head.encode() + b"x" * receiver.REFUSED_LIMIT)
        assert client.recv(100).startswith(b"HTTP/1.0 401")


def test_what_is_stored_survives_a_restart_and_deleted_clusters_are_forgotten_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Store(tmp_path / "received")
    before.accept(READY)
    before.registered(before.clusters()[0], "vim-1")
    after = Store(tmp_path / "received")
    [stored] = after.clusters()
    assert (stored.vim, stored.is_registered) == ("vim-1", True)
    gone = after.accept(later(READY, "gone"))
    assert (gone.vim, gone.is_registered) == ("vim-1", False)
    monkeypatch.setattr(store, "KEPT", -1)
    other = replace(READY, cluster="default/blue")
    after.accept(other)
    assert len(after.clusters()) == 2, "its VIM is still registered"
    after.registered(gone, "")
    after.accept(other)
    assert [one.last.cluster for one in after.clusters()] == ["default/blue"]


def test_no_message_of_the_time_of_gone_brings_a_cluster_back(running: Running) -> None:
    running.send(gone := later(READY, "gone"))
    running.send(gone)
    with pytest.raises(NotDelivered, match="status 409"):
        running.send(replace(READY, sentAt=gone.sentAt))
    assert not running.stored.exists()


def test_a_message_of_the_future_does_not_keep_out_those_after_it(running: Running) -> None:
    ahead = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=envelope.WINDOW + 60)
    for sent in (ahead.isoformat(), "9999-12-31T23:59:59-14:00"):
        assert running.post(replace(READY, sentAt=sent).body()) == 400
    running.send(READY)


def test_long_names_have_files(running: Running) -> None:
    long = [replace(READY, cluster=f"default/{'a' * 252}{end}") for end in "bc"]
    for message in long:
        running.send(message)
    assert len(list(running.folder.glob("*.kubeconfig"))) == 2
    for message in long:
        running.send(later(message, "gone"))
    assert not list(running.folder.glob("*.kubeconfig"))


def test_a_kubeconfig_that_a_crash_has_left_of_a_deleted_cluster_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    before = Store(tmp_path / "received")
    kubeconfig = before.kubeconfig(before.accept(READY))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "unlink", die)
        before.accept(later(READY, "gone"))
    assert kubeconfig.exists()
    with Store(tmp_path / "received").claimed():
        assert not kubeconfig.exists()


def test_a_copy_of_a_file_is_none_of_a_cluster(tmp_path: Path) -> None:
    """Its message could be an older one of the same cluster, such as `gone`."""
    one = Store(tmp_path / "received")
    one.accept(later(READY, "gone"))
    (one.folder / f"{NAME}.json").rename(one.folder / "copy.json")
    stored = one.accept(READY)
    assert one.clusters() == [stored] and one.kubeconfig(stored).exists()


def test_a_registration_that_another_message_has_overtaken_is_not_complete(tmp_path: Path) -> None:
    one = Store(tmp_path / "received")
    first = one.accept(READY)
    one.accept(later(READY, "going"))
    one.registered(first, "vim-1")
    [stored] = one.clusters()
    assert (stored.vim, stored.is_registered) == ("vim-1", False)


def test_a_connection_for_which_there_is_no_thread_counts_no_longer(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "EACH", 1)
    refused = threading.Event()

    def refuse(_: threading.Thread) -> None:
        refused.set()
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with socket.create_connection(("127.0.0.1", running.port)):
            assert refused.wait(10)
    running.send(READY)
    assert running.stored.exists()


def kubeconfig(**changes: Any) -> str:
    return yaml.safe_dump({**yaml.safe_load(SENT), **changes})


def with_text(text: str, cluster: str = READY.cluster) -> Envelope:
    return replace(READY, kubeconfig=text, digest=envelope.digest(text), cluster=cluster)


def test_the_kubeconfig_is_written_by_the_receiver(running: Running) -> None:
    """What is not used of the one that was sent does not arrive."""
    sent = yaml.safe_load(SENT)
    user = {"name": "other", "user": {"exec": {"command": "evil"}}}
    running.send(with_text(kubeconfig(users=[*sent["users"], user], extensions=[{"name": "evil"}])))
    assert running.stored.read_text() == STORED and "evil" not in STORED


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("user", "exec", {"command": "evil"}),
        ("user", "client-key", "/etc/key"),
        ("user", "as", "admin"),
        ("cluster", "certificate-authority", "/etc/ca"),
        ("cluster", "insecure-skip-tls-verify", True),
        ("cluster", "proxy-url", "http://127.0.0.1"),
    ],
)
def test_a_kubeconfig_that_leads_elsewhere_is_refused(running: Running, section: str, field: str, value: Any) -> None:
    content = yaml.safe_load(SENT)
    content[f"{section}s"][0][section][field] = value
    assert running.post(with_text(yaml.safe_dump(content)).body()) == 400
    assert f"400, refused: default/red: kubeconfig: {section} " in running.log[0] and field in running.log[0]
    assert not list(running.folder.iterdir())


def test_a_message_about_another_server_than_that_of_its_kubeconfig_is_refused(running: Running) -> None:
    assert running.post(replace(READY, endpoint="https://192.0.2.1:6443").body()) == 400
    assert running.log == ["127.0.0.1: 400, refused: default/red: endpoint is not the server of kubeconfig"]


def test_an_instance_has_limited_room(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "INSTANCE_LIMIT", 2 * 4096)
    running.send(READY)
    assert running.post(replace(READY, cluster="default/blue").body()) == 413
    running.send(READY)
    running.send(replace(READY, vnfInstanceId=GREEN))
    for event in ("going", "gone"):
        running.send(later(READY, event))
    assert f"413, refused: default/blue: no more room in the folder, for VNF instance {BLUE} or for all" in running.log[1]


def test_all_instances_together_have_limited_room(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LIMIT", 4 * 4096)
    for instance, status in ((BLUE, 204), (GREEN, 204), (RED, 413)):
        body = replace(READY, vnfInstanceId=instance).body()
        assert running.post(body, **envelope.signed(KEY, f"red/{instance}", body, time.time())) == status


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    one = Store(tmp_path / "received")
    (victim := tmp_path / "victim").write_text("mine")
    for name in (f"{NAME}.kubeconfig", f"{NAME}.json"):
        (one.folder / f".{name}.new").symlink_to(victim)
    stored = one.accept(READY)
    assert one.kubeconfig(stored).read_text() == STORED and victim.read_text() == "mine"
    (one.folder / ".lock").symlink_to(victim)
    with pytest.raises(OSError), one.claimed():
        pass
    (one.folder / f"{NAME}.ok").symlink_to(victim)
    victim.write_text(stored.identity)
    assert not one.is_confirmed(stored)


def test_a_folder_in_which_others_may_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "received").mkdir()
    for mode in (0o720, 0o702):
        folder.chmod(mode)
        with pytest.raises(InvalidRequest, match="other users may write in it; change that with: chmod go-w"):
            Store(folder)
    folder.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(InvalidRequest, match="belongs to another user"), Store(folder).claimed():
        pass
