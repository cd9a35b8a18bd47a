# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr receive` as a user runs it, with a certificate and secrets of its own."""

from __future__ import annotations

import secrets
import subprocess
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from ..testbed.bed import Environment
from ..testbed.config import free_ports
from ..testbed.processes import until

_CERTIFICATE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=receiver")


@dataclass
class Receiver:
    """All that it has is in `folder`; `log` is what it has printed."""

    folder: Path
    port: int
    secrets: tuple[str, str]
    registers: bool = True
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def prepare(cls, folder: Path, bed: Environment, *, registers: bool = True) -> Receiver:
        """Its files; it does not run yet. It `registers` clusters as VIMs."""
        [port] = free_ports(1)
        receiver = cls(folder, port, (secrets.token_hex(32), secrets.token_hex(32)), registers)
        for name, text in zip(("hmac.key", "token"), receiver.secrets, strict=True):
            (folder / name).write_text(text)
        files = ("-keyout", folder / "server.key", "-out", folder / "server.crt")
        command = ("openssl", "req", "-x509", *_CERTIFICATE, *files, "-addext", "subjectAltName=IP:127.0.0.1")
        subprocess.run(command, check=True, capture_output=True)
        (folder / _CLOUDS).write_text(yaml.safe_dump({"clouds": {"tacker": _cloud(bed)}}))
        return receiver

    def settings(self) -> str:
        """The settings of a sender that sends to it."""
        return yaml.safe_dump(
            {
                "url": f"https://127.0.0.1:{self.port}/",
                "ca-bundle": (self.folder / "server.crt").read_text(),
                "hmac-key": {"file": str(self.folder / "hmac.key")},
                "bearer-token": {"file": str(self.folder / "token")},
                "deadline": 10,
            }
        )

    def start(self) -> None:
        """Returns when it listens."""
        program = Path(sysconfig.get_path("scripts"), "k8s-cr")
        options = [f"--{option}={self.folder / name}" for option, name in _FILES.items()]
        options += ["--register-vim", f"--clouds={self.folder / _CLOUDS}"] if self.registers else []
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, "receive", f"--listen=127.0.0.1:{self.port}", *options], stderr=log
            )
        assert until(lambda: self.log.count("Listening on") > 0, 30), self.log

    def stop(self) -> None:
        """As a machine that crashes."""
        if self._process:
            self._process.kill()
            self._process.wait()

    @property
    def kubeconfigs(self) -> list[Path]:
        return sorted((self.folder / "received").glob("*.kubeconfig"))

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.folder / "log"


_FILES = {
    "folder": "received",
    "certificate": "server.crt",
    "key": "server.key",
    "hmac-key": "hmac.key",
    "token": "token",
}
_CLOUDS = "clouds.yaml"


def _cloud(bed: Environment) -> dict[str, object]:
    names = ("auth_url", "username", "password", "project_name", "user_domain_name", "project_domain_name")
    return {
        "auth_type": "password",
        "auth": {name: bed[f"OS_{name.upper()}"] for name in names},
        "region_name": bed["OS_REGION_NAME"],
    }
