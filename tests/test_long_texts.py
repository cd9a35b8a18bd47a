# SPDX-License-Identifier: Apache-2.0
"""What reads texts of others takes linear time for them, or cuts them first: much of a trigger of backtracking."""

from __future__ import annotations

import contextlib
import gc
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver import redaction
from k8s_cr_driver.credentials import envelope, settings
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube import connection, kubeconfig, refusals, tls, watch_events
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.lcm import vim
from k8s_cr_driver.objects.keys import GroupKind
from k8s_cr_driver.package import substitution
from k8s_cr_driver.resources.registry import resource_for
from tests.instance import obj

SIZE = 600_000
PARTS = 4
"""How many times as long the whole text is as the one that it is compared with. Quadratic time is its square."""
FLOOR = 0.2
"""Seconds of CPU that tell nothing of growth."""
TRIGGERS = ["a", "aA", " ", "_", "-", "error", "1", "1/", "[", "{", '"', "a: ", "%2e", "-----BEGIN A-----", "waiting ", "\\"]
OF_ERRORS = ["'", "${", "${A", "${A:=", "://a:", "Invalid value: ", "map[", "Bearer ", "eyJ", "password: ", "--token ", "@"]
MAPS = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"watch"}))


def health_of_texts(text: str) -> None:
    condition = {"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text}
    told = {"type": "Ready", "status": "False", "reason": text, "message": text, "lastTransitionTime": text}
    fields = ("phase", "state", "health", "message", "error", "errorMessage", "replicas", "ready", "readyReplicas", text)
    for status in ({"conditions": [condition, told]}, *({name: text, "progress": text} for name in fields)):
        live = obj("example.com/v1", "Any", "a", spec={"replicas": 1}, status=status)
        resource_for(live).health(live)


def health_of_lists(text: str) -> None:
    """As many conditions as an object may have, named by the beginning of the text."""
    conditions = [{"type": f"{text[:50]}{n}", "status": "False", "message": text[:50]} for n in range(len(text) // 100)]
    live = obj("example.com/v1", "Any", "a", status={"conditions": conditions, text: {"error": text}})
    resource_for(live).health(live)


def message(text: str) -> None:
    names = ("event", "vnfInstanceId", "cluster", "endpoint", "kubeconfig", "digest", "sentAt")
    envelope.parse(json.dumps(dict.fromkeys(names, text)).encode())


def vim_keys(text: str) -> None:
    where = {"endpoint": "https://10.0.0.1"}
    for interface, access in (
        ({"endpoint": text}, {}),
        ({"endpoint": f"https://{text}"}, {}),
        ({**where, "ssl_ca_cert": text}, {}),
        (where, {"bearer_token": text}),
    ):
        with contextlib.suppress(DriverError):
            vim.endpoint(interface, access, rules=EndpointRules(("*.example.com",)))


READERS: dict[str, Callable[[str], Any]] = {
    "health of texts": health_of_texts,
    "health of lists": health_of_lists,
    "message": message,
    "body of a message": lambda text: envelope.parse(text.encode()),
    "headers of a message": lambda text: envelope.is_signed(
        b"key", dict.fromkeys((envelope.TIME_HEADER, envelope.SIGNATURE_HEADER, envelope.SENDER_HEADER), text), b"", 0
    ),
    "settings": lambda text: settings.load(text, "settings"),
    "VIM": vim_keys,
    "kubeconfig": lambda text: kubeconfig.parse(text, "config"),
    "response": lambda text: connection._json("GET /", text.encode()),
    "status": refusals._status,
    "event": lambda text: watch_events.parse(MAPS, text.encode()),
    "error": redaction.foreign,
    "last guard": redaction.redact,
    "field": redaction.looks_secret,
    "exception": lambda text: redaction.words(ValueError(text)),
    "CA": tls.pem,
    "references": substitution.references,
    "Retry-After": lambda text: refusals.retry_after({"Retry-After": text}),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("part", TRIGGERS + OF_ERRORS, ids=repr)
def test_a_long_text_takes_linear_time(name: str, part: str) -> None:
    """A busy machine may slow one try down by half; quadratic time fails all. The objects of other tests are not collected."""
    whole = part * (SIZE // len(part))
    gc.disable()
    try:
        assert any(is_linear(READERS[name], whole) for _ in range(3))
    finally:
        gc.enable()


def is_linear(reader: Callable[[str], Any], whole: str) -> bool:
    return seconds(reader, whole) < 2 * PARTS * seconds(reader, whole[: len(whole) // PARTS]) + FLOOR


def seconds(reader: Callable[[str], Any], text: str) -> float:
    """Of CPU, to read a text. An error that callers explain is an answer, too."""
    began = time.thread_time()
    with contextlib.suppress(DriverError):
        reader(text)
    return time.thread_time() - began
