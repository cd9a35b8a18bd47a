# SPDX-License-Identifier: Apache-2.0
"""The message of the protocol: a JSON body, and the headers that sign it.

The signature is HMAC-SHA256 over the time, a dot, and the body. The time is that of the attempt: a retry has the same body
and another signature. Its key is made for the sender, a VNF instance of a project, from the key of the receiver: one that is
stolen signs for nothing else. A receiver orders the messages of a cluster by `sentAt` in the body.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube import kubeconfig
from k8s_cr_driver.kube.endpoint import is_plain
from k8s_cr_driver.objects.decoding import decoded

READY = "ready"
"""The cluster opens with this kubeconfig. Sent again when the kubeconfig has changed."""
GOING = "going"
"""The cluster is about to be deleted."""
GONE = "gone"
"""The cluster is deleted."""

_EVENTS = (READY, GOING, GONE)

TIME_HEADER = "K8s-Cr-Time"
"""Seconds since 1970, as an integer."""
SIGNATURE_HEADER = "K8s-Cr-Signature"
"""Lower-case hexadecimal digits."""
SENDER_HEADER = "K8s-Cr-Sender"
"""PROJECT/INSTANCE, for which the key of the signature is made; without a project of which nothing is known."""
WINDOW = 300
"""Seconds that the clocks of sender and receiver may differ."""

_INSTANCE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SENDER = re.compile(rf"[-_.A-Za-z0-9]{{0,64}}/{_INSTANCE.pattern}")
_CLUSTER = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")


_FIELDS = ("event", "vnfInstanceId", "cluster", "endpoint", "kubeconfig", "digest", "sentAt")


@dataclass(frozen=True)
class Envelope:
    """One message. The names of the fields are those of the JSON."""

    event: str
    vnfInstanceId: str  # noqa: N815
    cluster: str
    """NAMESPACE/NAME of the Cluster on the management cluster."""
    endpoint: str
    """URL of the workload cluster's API server."""
    kubeconfig: str = field(repr=False)
    """"" with `going` and `gone`."""
    digest: str
    """`digest` of the kubeconfig; with `going` and `gone` of the one that was sent last."""
    sentAt: str = field(default_factory=_now)  # noqa: N815
    """RFC 3339, UTC, with microseconds."""

    def body(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def digest(kubeconfig: str) -> str:
    return "sha256:" + hashlib.sha256(kubeconfig.encode()).hexdigest()


def signed(key: bytes, sender: str, body: bytes, now: float) -> dict[str, str]:
    """The headers for one attempt of `sender` to send `body` to the receiver that has `key`."""
    time = str(int(now))
    return {SENDER_HEADER: sender, TIME_HEADER: time, SIGNATURE_HEADER: _signature(derived(key, sender), time, body)}


def is_signed(key: bytes, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Whether the sender in the headers has signed `body` for the receiver with `key`, at a time within the window of `now`."""
    time, signature = headers.get(TIME_HEADER) or "", headers.get(SIGNATURE_HEADER) or ""
    sender = headers.get(SENDER_HEADER) or ""
    if not _SENDER.fullmatch(sender) or not re.fullmatch(r"[0-9]{1,12}", time) or abs(now - int(time)) > WINDOW:
        return False
    return hmac.compare_digest(_signature(derived(key, sender), time, body).encode(), signature.encode())


def derived(key: bytes, sender: str) -> bytes:
    """The key with which `sender` signs for the receiver that has `key`."""
    return hmac.new(key, f"k8s-cr-driver sender {sender}".encode(), hashlib.sha256).digest()


def is_of(headers: Mapping[str, str], message: Envelope) -> bool:
    """Whether a message is about the VNF instance for which its key is made."""
    return (headers.get(SENDER_HEADER) or "").rpartition("/")[2] == message.vnfInstanceId


def parse(body: bytes) -> Envelope:
    """Raises InvalidRequest, which names the field and shows no value."""
    try:
        content = decoded(body)
        texts = [content[name] for name in _FIELDS]
    except (ValueError, KeyError, TypeError):
        raise InvalidRequest(f"the body is not a JSON object with {', '.join(_FIELDS)}") from None
    if not all(isinstance(text, str) for text in texts):
        raise InvalidRequest("a field of the body is not text")
    envelope = Envelope(*texts)
    for name, is_right in _checks(envelope).items():
        if not is_right:
            raise InvalidRequest(f"{name} is not as the protocol has it")
    return envelope


def moment(envelope: Envelope) -> datetime.datetime:
    return datetime.datetime.fromisoformat(envelope.sentAt)


def order(envelope: Envelope) -> tuple[datetime.datetime, int]:
    """By which the messages of a cluster are sorted: those of one time end with the end of the cluster."""
    return moment(envelope), _EVENTS.index(envelope.event)


def is_ahead(envelope: Envelope, now: float) -> bool:
    """Whether the time of a message has not come, however clocks differ: no later message of its cluster would count."""
    return moment(envelope).timestamp() > now + WINDOW


def is_cluster(name: str) -> bool:
    """Whether a Cluster can have this NAMESPACE/NAME."""
    return _CLUSTER.fullmatch(name) is not None


def _checks(envelope: Envelope) -> dict[str, bool]:
    is_ready = envelope.event == READY
    is_url = len(envelope.endpoint) <= kubeconfig.URL_LIMIT and is_plain(envelope.endpoint)
    return {
        "event": envelope.event in _EVENTS,
        "vnfInstanceId": _INSTANCE.fullmatch(envelope.vnfInstanceId) is not None,
        "cluster": is_cluster(envelope.cluster),
        "endpoint": is_url or (not is_ready and not envelope.endpoint),
        "kubeconfig": bool(envelope.kubeconfig) is is_ready,
        "digest": not is_ready or envelope.digest == digest(envelope.kubeconfig),
        "sentAt": _is_moment(envelope),
    }


def _is_moment(envelope: Envelope) -> bool:
    try:
        return moment(envelope).tzinfo is not None
    except ValueError:
        return False


def _signature(key: bytes, time: str, body: bytes) -> str:
    return hmac.new(key, time.encode() + b"." + body, hashlib.sha256).hexdigest()
