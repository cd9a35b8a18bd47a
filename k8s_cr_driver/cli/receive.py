# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr receive`: the kubeconfigs of workload clusters arrive in a folder."""

from __future__ import annotations

import ssl
from pathlib import Path

import click

from k8s_cr_driver.credentials import secrets
from k8s_cr_driver.credentials.receiver import Gate, Receiver, tls_context
from k8s_cr_driver.credentials.store import Store

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _address(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, int]:
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter("is not HOST:PORT", context, parameter)
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
def receive(
    listen: tuple[str, int],
    folder: Path,
    certificate: Path,
    key: Path,
    hmac_key: Path,
    token: Path | None,
    client_ca: Path | None,
) -> None:
    """Receive the kubeconfigs of workload clusters, which the credential sender sends, in a folder.

    Runs until it is interrupted. A message is answered with 2xx after it is stored durably.
    """
    if token is None and client_ca is None:
        raise click.UsageError("Give --token, --client-ca, or both: otherwise anybody may send")
    gate = Gate(secrets.usable_key(hmac_key.read_bytes(), f"--hmac-key {hmac_key}"), _token(token))
    store = Store(folder)
    with Receiver(listen, _tls(certificate, key, client_ca), gate, store, lambda _: None, _log) as server:
        _log(f"Listening on {':'.join(map(str, server.server_address[:2]))}")
        server.serve_forever()


def _token(path: Path | None) -> str:
    return "" if path is None else secrets.usable_token(path.read_text(), f"--token {path}")


def _tls(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    try:
        return tls_context(str(certificate), str(key), str(client_ca or ""))
    except ssl.SSLError as error:
        raise click.UsageError(f"--certificate, --key or --client-ca: {error.reason}") from None


def _log(text: str) -> None:
    click.echo(text, err=True)
