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
from tacker.objects.vnf_package import VnfPackage
from tacker.objects.vnf_package_vnfd import VnfPackageVnfd
from tacker.sol_refactored.common import config, vim_utils
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver import logs
from k8s_cr_driver.errors import Forbidden
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm import conf, initiator, vim
from k8s_cr_driver.lcm.initiator import Initiator
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.redaction import redact

LOG = logs.logger(__name__)
CONF = config.CONF
_DEFAULT = "default"
"""Key of vimConnectionInfo for the default VIM, which Tacker takes if neither the request nor the grant names one."""


def project(stored: StoredInstance, began: Initiator) -> str:
    """
    The project of the instance, whose VIMs it uses: the one that has instantiated it; "" if not known.

    An earlier version has not recorded it: then it is that of the VNF package, which only members of it, and admins, can use.
    """
    if stored.project or not stored.info:
        return stored.project or began.project
    return _of_package(stored.vnfd_id or _vnfd_id(stored.record))


def check_default(req: Any, grant: Any, inst: Any, began: Initiator) -> None:
    """
    Raise Forbidden if an instantiate without a VIM is to have the default VIM of who retries it, not of who began it.

    Tacker reads the default VIM at each attempt, with the permissions of its user.
    """
    is_chosen = any(one is not None and one.obj_attr_is_set("vimConnectionInfo") for one in (req, grant))
    caller = initiator.current()
    if is_chosen or list(inst.vimConnectionInfo) != [_DEFAULT] or (began.is_known and began.project == caller.project):
        return
    is_own = _find(vim.identifier(inst.vimConnectionInfo[_DEFAULT]), began.project) is not None
    if not is_own and (began.is_known or (caller.user and caller.user.is_admin)):
        raise Forbidden(
            "vimConnectionInfo: the request names no VIM, and the default VIM of the user that retries the operation is "
            "none of the project that began it; let a user of that project retry it, or fail it and begin it again with a VIM"
        )


def _vnfd_id(record: Any) -> str:
    return str(record.vnfdId) if record.obj_attr_is_set("vnfdId") else ""


def _of_package(vnfd_id: str) -> str:
    """The project of the VNF package, "" if it is not known."""
    if not vnfd_id:
        return ""
    admin = context.get_admin_context()
    try:
        with admin.session:
            package = VnfPackageVnfd.get_by_id(admin, vnfd_id).package_uuid
            return str(VnfPackage.get_by_id(admin, package).tenant_id or "")
    except Exception as error:
        LOG.warning("The project of the package of VNFD %s cannot be read: %s", vnfd_id, redact(str(error)))
        return ""


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
    if not name or not project:
        return None
    found = _find(name, project)
    if found is None:
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


def _find(name: str, project: str) -> Any:
    """The VIM of a project with the id; None if it has none."""
    reader = _context(project)
    if not name or reader is None:
        return None
    try:
        with reader.session:
            return vim_utils.get_vim(reader, name)
    except sol_ex.SolException:  # Tacker logs whether it is not there, or cannot be read
        return None


def _context(project: str) -> Any:
    """The permissions of a project, whoever acts, so that nobody uses the VIM of another one; None without any.

    With a session of its own: Tacker decrypts credentials in the objects of a session, which a second read would find.
    """
    return context.Context(user_id=None, tenant_id=project, is_admin=False, overwrite=False) if project else None
