# SPDX-License-Identifier: Apache-2.0
"""A bare API server of the test bed's own programs: etcd and kube-apiserver on free ports, in a temporary folder."""

from __future__ import annotations

import base64
import secrets
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import urllib3
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from builds.programs import build

READY_WITHIN = 60.0
"""Seconds."""


@contextmanager
def api_server() -> Iterator[Path]:
    """The path of a kubeconfig with all rights; the server ends with the block."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="k8s-cr-benchmark-")))
        etcd, peer, port = _free_ports(3)
        token = secrets.token_hex(16)
        _write_credentials(home, token)
        stack.enter_context(_running(home, _etcd(home, etcd, peer)))
        stack.enter_context(_running(home, _apiserver(home, etcd, port)))
        _until_ready(f"https://127.0.0.1:{port}/readyz", token, home / "kube-apiserver.log")
        yield _kubeconfig(home, port, token)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def _write_credentials(home: Path, token: str) -> None:
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (home / "accounts.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    (home / "tokens").write_text(f"{token},admin,admin,system:masters\n")


def _etcd(home: Path, port: int, peer: int) -> list[str | Path]:
    clients, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        *(build("kubernetes") / "etcd", f"--data-dir={home / 'etcd'}"),
        *("--unsafe-no-fsync", "--logger=zap", "--log-level=error"),
        *(f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"),
        *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}"),
    ]


def _apiserver(home: Path, etcd: int, port: int) -> list[str | Path]:
    return [
        *(build("kubernetes") / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={port}"),
        *("--bind-address=127.0.0.1", "--authorization-mode=RBAC", f"--token-auth-file={home / 'tokens'}"),
        *(f"--cert-dir={home}", "--service-account-issuer=https://kubernetes.default.svc"),
        *(f"--service-account-key-file={home / 'accounts.key'}", "--disable-admission-plugins=ServiceAccount"),
        *(f"--service-account-signing-key-file={home / 'accounts.key'}", "--service-cluster-ip-range=10.96.0.0/16"),
    ]


@contextmanager
def _running(home: Path, command: list[str | Path]) -> Iterator[None]:
    with (home / f"{Path(command[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=home)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until_ready(url: str, token: str, log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN
    with urllib3.PoolManager(cert_reqs="CERT_NONE", retries=False) as pool, _without_warnings():
        while time.monotonic() < deadline:
            try:
                if pool.request("GET", url, headers={"Authorization": f"Bearer {token}"}).status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            time.sleep(0.1)
    raise TimeoutError(f"kube-apiserver is not ready after {READY_WITHIN:.0f} s:\n{log.read_text()[-2000:]}")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Its certificate is not there before it is up; only its readiness is asked without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        yield


def _kubeconfig(home: Path, port: int, token: str) -> Path:
    """In the form that the driver reads: with the certificates in it."""
    authority = base64.b64encode((home / "apiserver.crt").read_bytes()).decode()
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}
    path = home / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "benchmark",
        "contexts": [{"name": "benchmark", "context": {"cluster": "benchmark", "user": "admin"}}],
        "clusters": [{"name": "benchmark", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
    }))
    return path
