# SPDX-License-Identifier: Apache-2.0
"""
The access to an instance's cluster, with the login and CA of its registered VIM as they are now.

Tacker copies a registered VIM into each instance when that is instantiated, and refuses a MODIFY of the copy while an
operation is FAILED_TEMP. With [k8s_cr] credentials_from_vim the copy names the VIM only, so that one update of the VIM holds
for all its instances.
"""

from __future__ import annotations

from typing import Any

from tacker import context
from tacker.sol_refactored.common import config, vim_utils
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver import logs
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm import conf, vim
from k8s_cr_driver.lcm.initiator import Initiator
from k8s_cr_driver.lcm.instance_info import StoredInstance

LOG = logs.logger(__name__)
CONF = config.CONF


def project(stored: StoredInstance, initiator: Initiator) -> str:
    """
    The project of the instance, whose VIMs it uses: the one that has instantiated it; "" if not known.

    An earlier version has not recorded it: then it is that of the next user who is no admin.
    """
    if stored.project or (stored.info and initiator.user and initiator.user.is_admin):
        return stored.project
    return initiator.project


def endpoint(stored: Any, project: str) -> Endpoint:
    """
    Of a VimConnectionInfo that Tacker stores with an instance. Raises InvalidRequest.

    `project`: whose VIMs are used.
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
    """The permissions of a project, whoever acts, so that nobody uses the VIM of another one; None without any.

    With a session of its own: Tacker decrypts credentials in the objects of a session, which a second read would find.
    """
    return context.Context(user_id=None, tenant_id=project, is_admin=False, overwrite=False) if project else None
