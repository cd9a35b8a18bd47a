# SPDX-License-Identifier: Apache-2.0
"""VIMs in Tacker's API (v1.0, `vims`), authenticated as an entry of clouds.yaml says.

A VIM is recognized by its name, which is unique in a project, and its description: a registration whose response was lost is
found again, and a VIM of somebody else is left alone. Tacker cannot change the URL of a VIM, so a VIM with another one is
replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from keystoneauth1 import exceptions, loading
from keystoneauth1.adapter import Adapter

from k8s_cr_driver.cloud import session
from k8s_cr_driver.errors import DriverError, InvalidRequest
from k8s_cr_driver.kube.endpoint_rules import ANY
from k8s_cr_driver.objects.fields import entries, mapping
from k8s_cr_driver.redaction import words

VIMS = "/v1.0/vims"


@dataclass(frozen=True)
class Vim:
    """A Kubernetes cluster, as Tacker stores it."""

    name: str
    description: str
    url: str
    ca: str = field(repr=False)
    token: str = field(repr=False)

    def changes(self) -> dict[str, Any]:
        """The body of a PUT."""
        credentials = {"bearer_token": self.token, **({"ssl_ca_cert": self.ca} if self.ca else {})}
        return {"vim": {"description": self.description, "auth_cred": credentials}}

    def body(self) -> dict[str, Any]:
        """The body of a POST."""
        named = {"name": self.name, "type": "kubernetes", "auth_url": self.url, "is_default": False}
        return {"vim": {**named, "vim_project": {"name": "default"}, **self.changes()["vim"]}}


class Tacker:
    """Tacker's API with the credentials of one entry of clouds.yaml, whose cloud is the operator's own."""

    def __init__(self, cloud: Mapping[str, Any]) -> None:
        """Raises InvalidRequest."""
        try:
            loader: Any = loading.get_plugin_loader(cloud.get("auth_type", "password"))
            plugin = loader.load_from_options(**cloud["auth"])
        except exceptions.ClientException as error:
            raise InvalidRequest(f"The entry of clouds.yaml: {words(error)}") from None
        except TypeError:  # keystoneauth1 gives the plugin whatever `auth` has
            unknown = sorted(map(str, cloud["auth"].keys() - {option.dest for option in loader.get_options()}))
            raise InvalidRequest(f"The entry of clouds.yaml: auth has no setting {', '.join(unknown)}") from None
        verify = cloud.get("cacert") or cloud.get("verify", True)
        self._api = Adapter(
            session.session(plugin, ANY, verify),
            service_type="nfv-orchestration",
            interface=cloud.get("interface", "public"),
            region_name=cloud.get("region_name"),
        )

    def register(self, vim: Vim) -> None:
        """The VIM of that name has the URL and the credentials of `vim` afterwards.

        Raises DriverError, also if one of that name has another description.
        """
        existing = self._find(vim.name)
        if existing is not None and existing.get("description") != vim.description:
            raise DriverError(f"Tacker has a VIM {vim.name} that somebody else has registered; give the new one another name")
        if existing is not None and existing.get("auth_url") == vim.url:
            self._request("PUT", f"{VIMS}/{existing['id']}", vim.changes())
            return
        if existing is not None:
            self._request("DELETE", f"{VIMS}/{existing['id']}")
        self._request("POST", VIMS, vim.body())

    def remove(self, name: str, description: str) -> bool:
        """Removes the VIM of that name, if there is one; False if it has another description. Raises DriverError."""
        existing = self._find(name)
        if existing is None:
            return True
        if existing.get("description") != description:
            return False
        self._request("DELETE", f"{VIMS}/{existing['id']}")
        return True

    def _find(self, name: str) -> Mapping[str, Any] | None:
        found = entries(self._request("GET", VIMS, params={"name": name}), "vims")
        return next((vim for vim in found if vim.get("name") == name), None)

    def _request(self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        return session.request(self._api, "Tacker", method, path, json=body, params=params)


def cloud(path: Path, name: str) -> Mapping[str, Any]:
    """An entry of clouds.yaml. Raises InvalidRequest, and OSError for an unreadable file."""
    try:
        found = mapping(yaml.safe_load(path.read_text()), "clouds", name)
    except yaml.YAMLError:
        raise InvalidRequest(f"{path}: is not YAML") from None
    if not mapping(found, "auth"):
        raise InvalidRequest(f"{path}: there is no cloud {name!r} with auth")
    if not isinstance(found.get("verify", True), bool):
        raise InvalidRequest(f"{path}: verify of cloud {name!r} must be true or false, without quotes")
    return found
