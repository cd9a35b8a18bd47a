# SPDX-License-Identifier: Apache-2.0
"""Where the credential sender of a package sends to, and with which secrets.

Either to a receiver that the operator has defined, with the operator's secrets, which go to no other URL; or to a URL of the
package's own, at a host that the operator allows, with Secrets that the policy of the instance's project lets it have. So no
file of the conductor's host, and no Secret of others, leaves because a package or a request says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from k8s_cr_driver.credentials.settings import SECRETS, Settings, Source, origin
from k8s_cr_driver.errors import Forbidden, InvalidRequest, NotPermitted
from k8s_cr_driver.kube.pools import Judge, anywhere
from k8s_cr_driver.lcm import conf
from k8s_cr_driver.objects.fields import mapping, text, texts
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.vnf import tenants

SYSTEM = "kube-system"


def resolved(
    settings: Settings, options: Any, instance: Object, project: str, namespaces: Sequence[str]
) -> tuple[Settings, Judge]:
    """The settings with URL, CAs and the places of secrets, and who judges the addresses of the URL's host.

    `options` are those of `conf.of_conductor`, `namespaces` those of the instance's objects.
    Raises NotPermitted, Forbidden and InvalidRequest.
    """
    with conf.reading():
        if settings.receiver:
            return _of_operator(settings, options, project), anywhere
        rules = conf.receiver_rules(options, project)
        if not rules.allowed or not rules.may_permit(origin(settings.url)[1].strip("[]")):
            raise NotPermitted(
                f"{settings.url}: no connection to this host is permitted for a package; the operator allows it by [k8s_cr] "
                "allowed_receivers, or defines a receiver, which the package names"
            )
        for name, source in settings.sources.items():
            if rule := _rule_against(source.secret, options, instance, project, namespaces):
                raise Forbidden(f"the operator does not allow {name} in {source} ({rule}); take one of the instance's own")
        return settings, rules


def _of_operator(settings: Settings, options: Any, project: str) -> Settings:
    group = f"[k8s_cr_receiver:{settings.receiver}]"
    found = conf.receiver(options.conf, settings.receiver)
    if found is None or (found.projects and project not in found.projects):
        raise NotPermitted(
            f"receiver {settings.receiver}: the operator has defined none of this name for the project of the instance; ask "
            f"for {group} in tacker.conf"
        )
    if origin(found.url or "")[0] != "https":
        raise InvalidRequest(f"{group} url: must be an https URL; ask the operator")
    names = {name: f"{name.replace('-', '_')}_file" for name in SECRETS}
    sources = {name: Source(file=found[option], option=f"{group} {option}") for name, option in names.items() if found[option]}
    if "hmac-key" not in sources:
        raise InvalidRequest(f"{group} hmac_key_file: is missing; ask the operator")
    return dataclasses.replace(settings, url=found.url, ca_bundle=_cas(found.ca_file, group), sources=sources)


def _cas(file: str | None, group: str) -> str:
    try:
        return Path(file).read_text(encoding="ascii") if file else ""
    except (OSError, UnicodeDecodeError):
        raise InvalidRequest(f"{group} ca_file: cannot be read, or is no PEM; ask the operator") from None


def _rule_against(secret: str, options: Any, instance: Object, project: str, namespaces: Sequence[str]) -> str:
    """What forbids the instance a Secret NAMESPACE/NAME/KEY as one of its own; "" if nothing does."""
    namespace, name, _ = secret.split("/")
    recorded = text(_record(instance), "inventory", "namespace")
    if namespace in (SYSTEM, str(options.conf.k8s_cr.inventory_namespace), recorded):
        return f"the namespace {namespace} is that of the cluster or of the driver's inventories"
    vims: Sequence[Any] = list(mapping(instance, "vimConnectionInfo").values())
    ids = dict.fromkeys(filter(None, (project, *(text(vim, "vimId") for vim in vims))))
    for group, policy in conf.policies(options.conf, ids).items():
        if rule := policy.rule_against(ObjectKey("", "Secret", namespace, name)):
            return f"[{group}] {rule}"
    if not options.conf.k8s_cr.restrict_tenants:
        return ""
    given = (*namespaces, *conf.given_namespaces(options.conf, project))
    is_own = any(fnmatchcase(namespace, one) for one in given) and not namespace.startswith(tenants.OF_CLUSTER)
    return "" if is_own else "[k8s_cr] restrict_tenants"


def namespaces(instance: Object) -> list[str]:
    """Those in which the instance has objects, as the driver has recorded them: it has checked that they were permitted."""
    return texts(_record(instance), "inventory", "namespaces")


def _record(instance: Object) -> Mapping[str, Any]:
    return mapping(instance, "instantiatedVnfInfo", "metadata", "k8s_cr")
