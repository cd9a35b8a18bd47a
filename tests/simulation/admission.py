# SPDX-License-Identifier: Apache-2.0
"""
What refuses writes for minutes: a ResourceQuota that is used up, and a webhook that cannot be called, or denies.

Each concerns some resources, and one namespace or all. Until it ends every write of them fails, whoever asks for it; users
are left out, as what they do has no retries.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.fake_api import errors
from tests.fake_api.kinds import Resource

_NAMESPACES = ("", "", "default", "blue", "shared")
_COUNTED: tuple[Resource, ...] = (
    *(("", "configmaps"), ("", "pods"), ("", "persistentvolumeclaims")),
    *(("apps", "deployments"), ("apps", "statefulsets"), ("batch", "jobs"), ("sim.example.com", "widgets")),
)
_CHECKED: tuple[Resource, ...] = (
    *(("", "configmaps"), ("", "namespaces"), ("apps", "deployments"), ("apps", "statefulsets"), ("batch", "jobs")),
    *(("sim.example.com", "widgets"), ("apiextensions.k8s.io", "customresourcedefinitions")),
)


@dataclass(frozen=True)
class _Refusal:
    begins: float
    ends: float
    resources: frozenset[Resource]
    namespace: str
    error: Callable[[Resource, str], errors.ApiError]

    def check(self, now: float, resource: Resource, namespace: str, name: str) -> None:
        if self.begins <= now < self.ends and resource in self.resources and self.namespace in ("", namespace):
            raise self.error(resource, name)


class Admission:
    """`features` name what this life may have."""

    def __init__(self, chance: random.Random, features: frozenset[str]) -> None:
        self._quotas = _drawn(chance, _COUNTED, (_exceeded, _exceeded, _uncounted)) if "quota" in features else []
        self._webhooks = _drawn(chance, _CHECKED, (_uncalled, _uncalled, _denied)) if "webhooks" in features else []

    def calm(self) -> None:
        self._quotas, self._webhooks = [], []

    def check_creation(self, now: float, resource: Resource, namespace: str, name: str) -> None:
        """ApiError of a quota."""
        for quota in self._quotas:
            quota.check(now, resource, namespace, name)

    def check_request(self, now: float, resource: Resource, namespace: str, name: str) -> None:
        """ApiError of a webhook, before a write or a deletion."""
        for webhook in self._webhooks:
            webhook.check(now, resource, namespace, name)


def _drawn(
    chance: random.Random, resources: tuple[Resource, ...], kinds: tuple[Callable[[Resource, str], errors.ApiError], ...]
) -> list[_Refusal]:
    if chance.random() < 0.5:
        return []
    begins = chance.expovariate(1 / chance.choice((0.1, 3.0, 30.0)))
    ends = begins + chance.expovariate(1 / chance.choice((1.0, 20.0, 300.0)))
    concerned = frozenset(resources if chance.random() < 0.3 else chance.sample(resources, 1))
    return [_Refusal(begins, ends, concerned, chance.choice(_NAMESPACES), chance.choice(kinds))]


def _exceeded(resource: Resource, name: str) -> errors.ApiError:
    counted = f"count/{resource[1]}"
    why = f"exceeded quota: team, requested: {counted}=1, used: {counted}=5, limited: {counted}=5"
    return errors.forbidden(*resource, name, why)


def _uncounted(resource: Resource, name: str) -> errors.ApiError:
    return errors.forbidden(*resource, name, "status unknown for quota: team, resources: count")


def _uncalled(resource: Resource, name: str) -> errors.ApiError:
    del resource, name
    return errors.internal('failed calling webhook "check.sim.example.com": connection refused')


def _denied(resource: Resource, name: str) -> errors.ApiError:
    del resource, name
    return errors.ApiError(403, "Forbidden", 'admission webhook "check.sim.example.com" denied the request: not now')
