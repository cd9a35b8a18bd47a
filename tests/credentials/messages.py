# SPDX-License-Identifier: Apache-2.0
"""What a sender says of a workload cluster, and that cluster's token controller."""

from __future__ import annotations

import base64
import datetime
from dataclasses import replace
from typing import Any

from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.credentials.envelope import Envelope
from tests.credentials.clusters import TOKEN, kubeconfig_of
from tests.fake_api import FakeApi
from tests.instance import BLUE


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
