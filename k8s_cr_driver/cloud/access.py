# SPDX-License-Identifier: Apache-2.0
"""The APIs of an OpenStack project, with the credentials that Tacker's VIM has for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keystoneauth1.adapter import Adapter
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from k8s_cr_driver.cloud import session
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.objects.fields import text

TRIES = 5
"""Connections to a service that cannot be reached; the pauses between them grow from half a second."""
STATES = [502, 503, 504]
"""Responses of a service that is away for a moment."""


@dataclass
class Cloud:
    """One project. `requests` counts those that were sent after the authentication."""

    session: Session = field(repr=False)
    region: str = ""
    requests: int = 0

    def get(self, service: str, path: str, **params: str | Sequence[str]) -> Mapping[str, Any]:
        """The JSON of a response of the service of that type. Raises CloudError, InvalidRequest."""
        return self._request(service, "GET", path, params=params)

    def post(self, service: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same for a POST, such as an action of a server."""
        return self._request(service, "POST", path, json=body)

    def project(self) -> str:
        """The id of the project. Raises CloudError."""
        with session.explained("OpenStack, identity"):
            return str(self.session.get_project_id() or "")

    def _request(self, service: str, method: str, path: str, **options: Any) -> Mapping[str, Any]:
        self.requests += 1
        api = Adapter(
            self.session,
            service_type=service,
            interface="public",
            region_name=self.region or None,
            connect_retries=TRIES - 1,
            status_code_retries=TRIES - 1,
            retriable_status_codes=STATES,
        )
        return session.request(api, f"OpenStack, {service}", method, path, **options)


def of_vim(interface: Mapping[str, Any], access: Mapping[str, Any], verify: bool | str, rules: EndpointRules) -> Cloud:
    """
    The project of a VimConnectionInfo of type ETSINFV.OPENSTACK_KEYSTONE.V_3.

    verify: whether certificates are verified, or the path of the CA. rules: where its requests may go. Raises InvalidRequest
    for a key that is missing.
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
    return Cloud(session.session(plugin, rules, verify), text(access, "region"))
