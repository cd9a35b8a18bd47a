# SPDX-License-Identifier: Apache-2.0
"""
Whether the user of a request may have the objects of a package: the operator's policies, and what only admins may do.

Who is an admin is the matter of Tacker's policy (oslo.policy). Tacker's API server sends the context of the request, with its
project and roles, to the conductor, which makes it the context of the worker. A worker without a request, such as a
retry that the conductor starts by itself, has the context of an admin or none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oslo_context import context as oslo_context
from oslo_policy import policy as oslo_policy
from tacker import context, policy
from tacker.sol_refactored.common import config

from k8s_cr_driver.errors import Forbidden
from k8s_cr_driver.lcm import conf
from k8s_cr_driver.package import scripts
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf import tenants
from k8s_cr_driver.vnf.additional_params import Options

CONF = config.CONF
UNRESTRICTED = "os_nfv_orchestration_api_v2:k8s_cr:unrestricted"
_RULE = oslo_policy.RuleDefault(
    UNRESTRICTED, "is_admin:True", "Have objects in VNF packages that reach beyond the namespaces of a tenant."
)


def check(resources: Sequence[CustomResource], options: Options, vim: str) -> None:
    """Raise Forbidden, which names the object and the rule; `vim` is the vimId of the instance."""
    current = oslo_context.get_current()
    project = current.project_id if current else None
    keys = [obj.key for obj in resources]
    for group, rules in conf.policies(CONF, dict.fromkeys(filter(None, (project, vim)))).items():
        rules.check(keys, options, group)
    if not CONF.k8s_cr.restrict_tenants or _is_unrestricted(current):
        return
    if found := tenants.violation(obj.manifest for obj in resources):
        raise Forbidden(
            f"{found}. Only users with the policy rule {UNRESTRICTED} may have that ([k8s_cr] restrict_tenants); take it out "
            "of the package, or let an admin do this operation"
        )


def check_scripts(vnfd: Any) -> None:
    """Raise Forbidden, which names the script and its digest, if the package of `vnfd` has one that is not allowed."""
    named = scripts.named((vnfd.definitions or {}).values())
    allowed = {*map(str.lower, CONF.k8s_cr.allowed_scripts), *scripts.digests()}
    if not named or "*" in allowed or _is_unrestricted(oslo_context.get_current()):
        return
    for path, digest in scripts.programs(Path(vnfd.csar_dir), named).items():
        if digest not in allowed:
            what = f"its SHA-256 is {digest}" if digest else "it is no file of the package"
            raise Forbidden(
                f"{path}: the operator does not allow this script of the package, which would run on the conductor ([k8s_cr] "
                f"allowed_scripts); {what}. Only users with the policy rule {UNRESTRICTED} may have it"
            )


def _is_unrestricted(current: oslo_context.RequestContext | None) -> bool:
    if not isinstance(current, context.Context):
        return True
    policy.init()
    with contextlib.suppress(oslo_policy.DuplicatePolicyError):
        policy._ENFORCER.register_default(_RULE)
    return bool(current.can(UNRESTRICTED, fatal=False))
