# SPDX-License-Identifier: Apache-2.0
"""
The access to an instance's cluster, with the login and CA of its registered VIM as they are now.

Tacker copies a registered VIM into each instance when that is instantiated, and refuses a MODIFY of the copy while an
operation is FAILED_TEMP. With [k8s_cr] credentials_from_vim the copy names the VIM only, so that one update of the VIM holds
for all its instances.
"""

from __future__ import annotations

from typing import Any

from oslo_context import context as oslo_context
from tacker import context
from tacker.sol_refactored.common import config, vim_utils
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver import logs
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm import conf, vim
from k8s_cr_driver.lcm.instance_info import StoredInstance

LOG = logs.logger(__name__)
CONF = config.CONF


def project(stored: StoredInstance) -> str:
    """The project whose VIMs the instance may use without a request: the one that has instantiated it; "" if not known."""
    current = oslo_context.get_current()
    is_known = stored.project or not isinstance(current, context.Context) or (current.is_admin and stored.info)
    return stored.project if is_known else current.tenant_id or ""


def endpoint(stored: Any, project: str) -> Endpoint:
    """
    Of a VimConnectionInfo that Tacker stores with an instance. Raises InvalidRequest.

    `project`: whose VIMs are used where no request is.
    """
    access = (_registered(stored, project) if CONF.k8s_cr.credentials_from_vim else None) or stored
    return vim.endpoint(
        access.interfaceInfo,
        access.accessInfo,
        verify_without_ca=CONF.k8s_cr.verify_tls_without_ca,
        rules=conf.endpoint_rules(CONF.k8s_cr),
    )


def _registered(stored: Any, project: str) -> Any:
    """The VIM of the same vimId and endpoint; None if the project has none, and the stored credentials have to do.

    A VIM's credentials are sent to its own endpoint only: an instance's endpoint is what a user has given.
    """
    name = vim.identifier(stored)
    reader = _context(project)
    if not name or reader is None:
        return None
    try:
        with reader.session:
            found = vim_utils.get_vim(reader, name)
    except sol_ex.SolException:  # Tacker logs whether it is not there, or cannot be read
        LOG.warning("VIM %s is not registered: the credentials stored with the VNF instance are used", name)
        return None
    if found.interfaceInfo["endpoint"] != stored.interfaceInfo["endpoint"]:
        LOG.warning(
            "VIM %s has the endpoint %s, the VNF instance %s: the credentials stored with the instance are used",
            name,
            found.interfaceInfo["endpoint"],
            stored.interfaceInfo["endpoint"],
        )
        return None
    return found


def _context(project: str) -> Any:
    """The permissions of the request, else of `project`, so that nobody uses the VIM of another one; None without any.

    With a session of its own: Tacker decrypts credentials in the objects of a session, which a second read would find.
    """
    current = oslo_context.get_current()
    if not isinstance(current, context.Context) or not current.tenant_id:
        return context.Context(user_id=None, tenant_id=project, is_admin=False, overwrite=False) if project else None
    return context.Context(
        user_id=current.user_id, tenant_id=current.tenant_id, is_admin=current.is_admin, roles=current.roles, overwrite=False
    )
