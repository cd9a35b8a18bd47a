# SPDX-License-Identifier: Apache-2.0
"""What a sender says of a workload cluster, and that cluster's token controller."""

from __future__ import annotations

import base64
import datetime
from dataclasses import replace
from typing import Any

import yaml

from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.credentials.envelope import Envelope
from k8s_cr_driver.kube import kubeconfig
from tests.cli import tool
from tests.credentials.clusters import TOKEN, kubeconfig_of
from tests.fake_api import FakeApi
from tests.instance import BLUE

SERVER = "https://10.0.0.1:6443"
SENT = yaml.safe_dump(tool.kubeconfig(SERVER, token="secret-of-the-admin"))
STORED = kubeconfig.written(kubeconfig.parse(SENT, ""), "red", "")
"""What the receiver makes of SENT."""
READY = Envelope("ready", BLUE, "default/red", SERVER, SENT, envelope.digest(SENT))


def issue(api: FakeApi, token: str) -> None:
    def control(secret: dict[str, Any]) -> None:
        if secret.get("type") == "kubernetes.io/service-account-token" and not secret.get("data"):
            data = {"token": base64.b64encode(token.encode()).decode()}
            api.edit("Secret", "tacker-vim", "tacker-vim", lambda live: live.update(data=data))

    api.react("Secret", control)


def ready(workload: FakeApi, token: str = TOKEN, seconds: int = 0) -> Envelope:
    text = kubeconfig_of(workload, token)
    sent = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return Envelope("ready", BLUE, "default/red", workload.url, text, envelope.digest(text), sent.isoformat())


def gone(message: Envelope) -> Envelope:
    sent = envelope.moment(message) + datetime.timedelta(hours=1)
    return replace(message, event="gone", kubeconfig="", sentAt=sent.isoformat())


def later(message: Envelope, event: str) -> Envelope:
    sent = envelope.moment(message) + datetime.timedelta(seconds=1)
    return replace(message, event=event, kubeconfig="", sentAt=sent.isoformat())
