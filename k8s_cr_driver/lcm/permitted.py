# SPDX-License-Identifier: Apache-2.0
"""
Whether an operation may have the objects of a package and the options of its request: the operator's policies, and what only
admins may do.

Who is an admin is the matter of Tacker's policy (oslo.policy). An operation is judged by who began it (`lcm.initiator`), one
that the conductor began by who has given the instance its package, and the policy of a project is that of the instance.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from oslo_policy import policy as oslo_policy
from tacker import context, policy
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config

from k8s_cr_driver.errors import ApiError, Forbidden
from k8s_cr_driver.lcm import conf, initiator, vim
from k8s_cr_driver.lcm.initiator import Initiator
from k8s_cr_driver.lcm.instance_info import StoredInstance, project_of
from k8s_cr_driver.objects.keys import NAMESPACE, Object, key_of, kind_of
from k8s_cr_driver.objects.marks import bringers, is_created, users
from k8s_cr_driver.package import scripts
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf import tenants
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.policy import OPTIONS, Policy, matches
from k8s_cr_driver.vnf.session import Session

CONF = config.CONF
UNRESTRICTED = "os_nfv_orchestration_api_v2:k8s_cr:unrestricted"
_RULES = {
    UNRESTRICTED: "Have objects in VNF packages that reach beyond the namespaces of a tenant.",
    **{
        f"os_nfv_orchestration_api_v2:k8s_cr:{name.replace('-', '_')}": f"Set {name} in additionalParams."
        for name in OPTIONS
    },
}
_AGAIN = "fail the operation and begin it again, because it is not known who began it"


def check_options(stored: StoredInstance, began: Initiator, options: Options, *, delete_guests: bool = False) -> None:
    """Raise Forbidden, which names the option and the rule, for one that the request must not set."""
    given = (options.adopt_existing, options.force_conflicts, delete_guests)
    names = [name for name, is_given in zip(OPTIONS, given, strict=True) if is_given]
    for group, rules in _policies(stored).items():
        rules.check((), names, group)
    for name in names:
        rule = f"os_nfv_orchestration_api_v2:k8s_cr:{name.replace('-', '_')}"
        if not _has_rule(began, rule):
            remedy = "leave it out, or let an admin do this operation" if began.is_known else _AGAIN
            raise Forbidden(f"additionalParams {name}: only users with the policy rule {rule} may set it; {remedy}")


def check(
    resources: Sequence[CustomResource], options: Options, stored: StoredInstance, began: Initiator, session: Session
) -> None:
    """Raise Forbidden, which names the object or option and the rule; `resources` have their namespaces."""
    check_options(stored, began, options)
    keys = [obj.key for obj in resources]
    for group, rules in _policies(stored).items():
        rules.check(keys, group=group)
    if not is_tenant(stored, began):
        return
    namespaces = _Namespaces(stored, session, [obj.manifest for obj in resources])
    allowed = conf.tenant_rules(CONF, stored.project, namespaces.why_not)
    if found := tenants.violation([obj.manifest for obj in resources], allowed):
        remedy = "take it out of the package, or let an admin do this operation" if began.is_known else _AGAIN
        raise Forbidden(
            f"{found}. Only users with the policy rule {UNRESTRICTED} may have that ([k8s_cr] restrict_tenants); {remedy}"
        )
    session.makes(namespaces.absent)


def check_scripts(vnfd: Any, began: Initiator) -> None:
    """Raise Forbidden, which names the script and its digest, if the package of `vnfd` has one that is not allowed.

    Where it is not known who began the operation, a script of it has run before: then whoever calls now is asked.
    """
    named = scripts.named((vnfd.definitions or {}).values())
    allowed = {*map(str.lower, CONF.k8s_cr.allowed_scripts), *scripts.digests()}
    if not named or "*" in allowed or _has_rule(began if began.is_known else initiator.current(), UNRESTRICTED):
        return
    for path, digest in scripts.programs(Path(vnfd.csar_dir), named).items():
        if digest not in allowed:
            what = f"its SHA-256 is {digest}" if digest else "it is no file of the package"
            raise Forbidden(
                f"{path}: the operator does not allow this script of the package, which would run on the conductor ([k8s_cr] "
                f"allowed_scripts); {what}. Only users with the policy rule {UNRESTRICTED} may have it"
            )


def is_tenant(stored: StoredInstance, began: Initiator) -> bool:
    """Whether the allowlist of tenants applies; that of an instance is the matter of who has given it its package."""
    if not CONF.k8s_cr.restrict_tenants:
        return False
    return stored.is_tenants if began.is_conductor else not _has_rule(began, UNRESTRICTED)


def _policies(stored: StoredInstance) -> dict[str, Policy]:
    return conf.policies(CONF, dict.fromkeys((stored.project, vim.identifier(stored.vim))))


def _has_rule(began: Initiator, rule: str) -> bool:
    if began.user is None:
        return began.is_conductor
    policy.init()
    for name, text in _RULES.items():
        with contextlib.suppress(oslo_policy.DuplicatePolicyError):
            policy._ENFORCER.register_default(oslo_policy.RuleDefault(name, "is_admin:True", text))
    return bool(began.user.can(rule, fatal=False))


class _Namespaces:
    """Which namespaces a tenant may use: what the operator gives its project, and what instances of this have made.

    `absent` are those that the package brings and that did not exist when they were judged.
    """

    def __init__(self, stored: StoredInstance, session: Session, manifests: Iterable[Object]) -> None:
        self._stored, self._session = stored, session
        self._given = conf.given_namespaces(CONF, stored.project)
        self._reserved = conf.reserved_namespaces(CONF, (stored.project, vim.identifier(stored.vim)))
        self._closed = {CONF.k8s_cr.inventory_namespace, stored.inventory_namespace}
        self._brought = {key_of(one).name for one in manifests if kind_of(one) == NAMESPACE}
        self.absent: set[str] = set()

    def why_not(self, name: str) -> str:
        """Why objects may not be in a namespace; "" if they may."""
        if name in self._closed:
            return "holds the inventories of this driver"
        if name.startswith(tenants.OF_CLUSTER):
            return "is one of the cluster"
        if matches(name, self._given):
            return ""
        try:
            live = self._session.namespace(name)
        except ApiError as error:
            return f"is none that the operator gives the project, and cannot be read: {error}"
        if live is not None and self._is_own(live):
            return ""
        if live is None and name not in self._brought:
            return "does not exist, and the package does not bring it"
        if live is None and not matches(name, self._reserved):
            self.absent.add(name)
            return ""
        return "is none that the operator gives the project ([k8s_cr:PROJECT] allowed_namespaces), or its instances made"

    def _is_own(self, live: Object) -> bool:
        """Whether instances of the project have made it; who has made it may have left it to the others that use it."""
        makers = bringers(live) or users(live)
        return is_created(live) and bool(makers) and all(map(self._is_of_project, makers))

    def _is_of_project(self, instance: str) -> bool:
        if instance == self._stored.id:
            return True
        found = objects.VnfInstanceV2.get_by_id(context.get_admin_context(), instance) if self._stored.project else None
        return found is not None and project_of(found) == self._stored.project
