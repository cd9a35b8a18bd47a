# SPDX-License-Identifier: Apache-2.0
"""The APIs of an OpenStack project, with the credentials that Tacker's VIM has for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from keystoneauth1.adapter import Adapter
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from k8s_cr_driver.cloud import session
from k8s_cr_driver.cloud.session import Away
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.objects.fields import text

AWAY_WITHIN = 180.0
"""Seconds for which a service may be away, while it is restarted or moves to another host."""
PAUSE = 5.0
"""Seconds between two requests at most."""
LEAST = 1.0
"""Seconds that a request has at least, if one fails before the deadline and is sent again."""
T = TypeVar("T")


@dataclass
class Cloud:
    """One project. `requests` counts those that were sent after the authentication."""

    session: Session = field(repr=False)
    region: str = ""
    until: float = math.inf
    """A monotonic time, after which nothing is asked again."""
    progress: Callable[[str], None] = lambda _: None
    """Is given a line when a service is waited for."""
    requests: int = 0

    def get(self, service: str, path: str, **params: str | Sequence[str]) -> Mapping[str, Any]:
        """The JSON of a response of the service of that type. Raises CloudError, InvalidRequest."""
        return self._request(service, "GET", path, params=params)

    def post(self, service: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same for a POST, such as an action of a server."""
        return self._request(service, "POST", path, json=body)

    def project(self) -> str:
        """The id of the project. Raises CloudError."""

        def ask() -> str:
            with session.explained("OpenStack, identity"):
                return str(self.session.get_project_id() or "")

        return self._patiently(ask)

    def _request(self, service: str, method: str, path: str, **options: Any) -> Mapping[str, Any]:
        api = Adapter(self.session, service_type=service, interface="public", region_name=self.region or None)

        def ask() -> Mapping[str, Any]:
            self.requests += 1
            return session.request(api, f"OpenStack, {service}", method, path, **options)

        return self._patiently(ask)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """What it returns, once the service is there. Only for what may be asked twice."""
        started, failures = time.monotonic(), 0
        while True:
            try:
                return ask()
            except Away as error:
                failures += 1
                pause, now = backoff.delay(failures, last=PAUSE), time.monotonic()
                if now + pause + LEAST > min(started + AWAY_WITHIN, self.until):
                    raise Away(f"{error}; it was waited for, {now - started:.0f} s") from None
                if failures == 1:
                    self.progress(f"waits for a service: {error}")
            time.sleep(pause)


def of_vim(
    interface: Mapping[str, Any],
    access: Mapping[str, Any],
    verify: bool | str,
    rules: EndpointRules,
    until: float = math.inf,
    progress: Callable[[str], None] = lambda _: None,
) -> Cloud:
    """
    The project of a VimConnectionInfo of type ETSINFV.OPENSTACK_KEYSTONE.V_3.

    verify: whether certificates are verified, or the path of the CA. rules: where its requests may go. until, progress: of
    the Cloud. Raises InvalidRequest for a key that is missing.
    """
    needed = ("username", "password", "project", "userDomain", "projectDomain")
    if missing := [key for key in needed if not text(access, key)]:
        raise InvalidRequest(f"vimConnectionInfo.accessInfo: {', '.join(missing)} of the OpenStack VIM is missing")
    plugin = v3.Password(
        auth_url=text(interface, "endpoint"),
        username=access["username"],
        password=access["password"],
        project_name=access["project"],
        user_domain_name=access["userDomain"],
        project_domain_name=access["projectDomain"],
    )
    return Cloud(session.session(plugin, rules, verify, until), text(access, "region"), until, progress)
