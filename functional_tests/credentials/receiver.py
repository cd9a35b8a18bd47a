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
    options: Path
    """The file of options in which the conductors of the bed find it, by the name of the file."""
    registers: bool = True
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def prepare(cls, folder: Path, bed: Environment, *, registers: bool = True) -> Receiver:
        """Its files, and its definition in the options of the bed's conductors; it does not run yet.

        It `registers` clusters as VIMs.
        """
        [port] = free_ports(1)
        options = Path(bed["TACKER_CONFIG_DIR"], f"receiver-{port}.conf")
        receiver = cls(folder, port, (secrets.token_hex(32), secrets.token_hex(32)), options, registers)
        for name, text in zip(("hmac.key", "token"), receiver.secrets, strict=True):
            (folder / name).write_text(text)
        files = ("-keyout", folder / "server.key", "-out", folder / "server.crt")
        command = ("openssl", "req", "-x509", *_CERTIFICATE, *files, "-addext", "subjectAltName=IP:127.0.0.1")
        subprocess.run(command, check=True, capture_output=True)
        (folder / _CLOUDS).write_text(yaml.safe_dump({"clouds": {"tacker": _cloud(bed)}}))
        files = {"ca_file": "server.crt", "hmac_key_file": "hmac.key", "bearer_token_file": "token"}
        lines = [f"[k8s_cr_receiver:{options.stem}]", f"url = https://127.0.0.1:{port}/"]
        lines += [f"{option} = {folder / name}" for option, name in files.items()]
        new = options.with_suffix(".new")  # a conductor reads *.conf, and never half a file
        new.write_text("\n".join([*lines, ""]))
        new.rename(options)
        return receiver

    def settings(self) -> str:
        """The settings of a sender that sends to it."""
        return yaml.safe_dump({"receiver": self.options.stem, "deadline": 10})

    def forget(self) -> None:
        """Stops it, and removes it from the options of the conductors."""
        self.stop()
        self.options.unlink(missing_ok=True)

    def start(self) -> None:
        """Returns when it listens."""
        program = Path(sysconfig.get_path("scripts"), "k8s-cr")
        options = [f"--{option}={self.folder / name}" for option, name in _FILES.items()]
        options += ["--register-vim", f"--clouds={self.folder / _CLOUDS}", "--allow-endpoint=*"] if self.registers else []
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
