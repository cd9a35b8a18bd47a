# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr receive`: the kubeconfigs of workload clusters arrive in a folder."""

from __future__ import annotations

import ssl
import stat
from collections.abc import Callable
from pathlib import Path

import click

from k8s_cr_driver.cli.output import echo
from k8s_cr_driver.credentials import secrets
from k8s_cr_driver.credentials.receiver import Gate, Receiver, tls_context
from k8s_cr_driver.credentials.store import Store, Stored
from k8s_cr_driver.kube.endpoint_rules import EndpointRules

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _address(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, int]:
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{value!r} is not HOST:PORT", context, parameter)
    return host.strip("[]"), int(port)


@click.command(
    epilog="""
    \b
    Example:
      k8s-cr receive --folder /var/lib/k8s-cr --certificate server.crt --key server.key \\
        --hmac-key hmac.key --token token
    """
)
@click.option("--listen", default="0.0.0.0:8443", callback=_address, metavar="HOST:PORT", show_default=True)
@click.option("--folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="Where kubeconfigs are stored.")
@click.option("--certificate", required=True, type=FILE, help="The server's certificate, with those of its CAs.")
@click.option("--key", required=True, type=FILE, help="The key of the certificate.")
@click.option("--hmac-key", required=True, type=FILE, help="The key of the senders' signature.")
@click.option("--token", type=FILE, help="Senders must have this bearer token.")
@click.option("--client-ca", type=FILE, help="Senders must have a certificate that this CA has signed.")
@click.option("--register-vim", is_flag=True, help="Keep a VIM in Tacker for each cluster.")
@click.option("--clouds", type=FILE, help="With --register-vim: the clouds.yaml with Tacker's credentials.")
@click.option("--cloud", metavar="NAME", default="tacker", show_default=True, help="The entry in --clouds.")
@click.option(
    "--allow-endpoint",
    "allowed",
    metavar="HOST",
    multiple=True,
    help="With --register-vim: only clusters there are connected to. A name with * for any part, an address or a network; "
    "more than once for several. Else all with global addresses.",
)
def receive(
    listen: tuple[str, int],
    folder: Path,
    certificate: Path,
    key: Path,
    hmac_key: Path,
    token: Path | None,
    client_ca: Path | None,
    register_vim: bool,
    clouds: Path | None,
    cloud: str,
    allowed: tuple[str, ...],
) -> None:
    """Receive the kubeconfigs of workload clusters, which the credential sender sends, in a folder.

    Runs until it is interrupted. The response is 2xx after the message is stored durably. With --register-vim a cluster is
    a VIM of Tacker until it no longer exists, with a ServiceAccount of its own.
    """
    if token is None and client_ca is None:
        raise click.UsageError("Give --token, --client-ca, or both: otherwise anybody may send")
    if allowed and not register_vim:
        raise click.UsageError("--allow-endpoint needs --register-vim: nothing else connects to a cluster")
    if register_vim != (clouds is not None):
        raise click.UsageError("--register-vim and --clouds belong together")
    for option, path in (("--key", key), ("--hmac-key", hmac_key), ("--token", token), ("--clouds", clouds)):
        if path is not None and path.stat().st_mode & stat.S_IROTH:
            _log(f"warning: {option} {path}: other users may read it; change that with: chmod o-r {path}")
    gate = Gate(secrets.usable_key(hmac_key.read_bytes(), f"--hmac-key {hmac_key}"), _token(token))
    tls, store = _tls(certificate, key, client_ca), Store(folder)
    with store.claimed():
        accepted = _registering(store, clouds, cloud, allowed) if clouds else _ignored
        with _listening(listen, tls, gate, store, accepted) as server:
            _log(f"Listening on {':'.join(map(str, server.server_address[:2]))}")
            server.serve_forever()


def _registering(store: Store, clouds: Path, name: str, allowed: tuple[str, ...]) -> Callable[[Stored], None]:
    """Starts the registrar; returns what reports a message to it."""
    from k8s_cr_driver.credentials import tacker  # keystoneauth1 is slow to import
    from k8s_cr_driver.credentials.registration import Registrar

    rules = EndpointRules(allowed, option="--allow-endpoint")
    registrar = Registrar(store, tacker.Tacker(tacker.cloud(clouds, name)), _log, rules)
    registrar.start()
    return registrar.changed


def _ignored(_: Stored) -> None:
    """Without --register-vim nothing follows."""


def _token(path: Path | None) -> str:
    return "" if path is None else secrets.usable_token(path.read_text(), f"--token {path}")


def _tls(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """Each file is read by itself first, because OpenSSL does not say which of them is wrong."""
    _readable("--certificate", certificate)
    if client_ca is not None:
        _readable("--client-ca", client_ca)
    try:
        return tls_context(str(certificate), str(key), str(client_ca or ""))
    except (ssl.SSLError, ValueError) as error:
        wrong = (
            "does not belong to --certificate"
            if "MISMATCH" in str(error)
            else "is no private key as PEM, or its passphrase is wrong"
        )
        raise click.UsageError(f"--key {key}: {wrong}") from None


def _readable(option: str, path: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        raise click.UsageError(f"{option} {path}: is no certificate as PEM") from None


def _listening(
    listen: tuple[str, int], tls: ssl.SSLContext, gate: Gate, store: Store, accepted: Callable[[Stored], None]
) -> Receiver:
    try:
        return Receiver(listen, tls, gate, store, accepted, _log)
    except OSError as error:
        raise click.UsageError(f"--listen {listen[0]}:{listen[1]}: {error.strerror}") from None


def _log(text: str) -> None:
    echo(text, err=True)
