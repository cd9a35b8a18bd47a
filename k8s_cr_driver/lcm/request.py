# SPDX-License-Identifier: Apache-2.0
"""What a request of the LCM API says to this driver: its additionalParams, what to heal, the time of a graceful terminate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacker.sol_refactored.common import config

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.package import helm_hooks
from k8s_cr_driver.package.manifests import is_namespace
from k8s_cr_driver.vnf import additional_params
from k8s_cr_driver.vnf.additional_params import FILES, Options

CONF = config.CONF


def params(req: Any) -> dict[str, Any]:
    """The request's additionalParams."""
    return dict(req.additionalParams) if req.obj_attr_is_set("additionalParams") and req.additionalParams else {}


def is_set(req: Any, key: str) -> bool:
    """A flag that holds for this request only."""
    return additional_params.is_set(params(req), key)


def namespace(req: Any) -> str:
    """Where an instantiate has put its objects; "default" if what it asks for is no name of a Namespace."""
    given = params(req).get("namespace")
    return given if isinstance(given, str) and is_namespace(given) else "default"


def updated(before: Options, req: Any) -> Options:
    """`before` with the options of the request."""
    found = before.updated(params(req))
    if "wait-timeout" in params(req):
        _check_seconds("additionalParams wait-timeout", found.wait_timeout or 0.0)
    return found


def options(stored: StoredInstance, req: Any) -> Options:
    """The stored options, overridden by those of the request; parameters one by one."""
    given = updated(stored.options, req)
    return replace(given, parameters={**stored.options.parameters, **given.parameters})


def options_in_place(stored: StoredInstance, req: Any) -> Options:
    """The same for a verb that keeps the set of objects: InvalidRequest for a key that would select or place others."""
    found = options(stored, req)
    if found.plan:
        raise InvalidRequest("additionalParams plan: only instantiate and a change of package follow one; leave it out")
    for key, given, kept in (
        ("namespace", found.namespace, stored.options.namespace),
        (FILES, list(found.files), list(stored.options.files)),
        (helm_hooks.PARAMETER, found.helm_hooks, stored.options.helm_hooks),
    ):
        if given != kept:
            raise InvalidRequest(
                f"additionalParams {key}: only a change of the VNF package can change it; the instance has {kept!r}"
            )
    before = stored.options.parameters
    if changed := sorted(name for name, value in found.parameters.items() if name not in before or before[name] != value):
        raise InvalidRequest(
            f"additionalParams parameters: only a change of the VNF package can change them; leave out {', '.join(changed)}"
        )
    return found


def heals_all(req: Any) -> bool:
    """Whether a heal is for the whole instance; InvalidRequest for an empty list of VNFCs, which Tacker accepts."""
    if not req.obj_attr_is_set("vnfcInstanceId"):
        return True
    if not req.vnfcInstanceId:
        raise InvalidRequest("vnfcInstanceId: names no VNFC; name some, or leave it out to heal all")
    return False


def grace_period(req: Any) -> int:
    """Seconds in which the VNF is taken out of service, before the time limit of the verb begins (SOL003 clause 5.5.2.8)."""
    if req.terminationType != "GRACEFUL":
        return 0
    if req.obj_attr_is_set("gracefulTerminationTimeout"):
        _check_seconds("gracefulTerminationTimeout", req.gracefulTerminationTimeout)
        return int(req.gracefulTerminationTimeout)
    return int(CONF.v2_vnfm.default_graceful_termination_timeout)


def _check_seconds(what: str, seconds: float) -> None:
    """Raise InvalidRequest if `what` is longer than the operator allows."""
    if seconds > CONF.k8s_cr.max_wait_timeout:
        raise InvalidRequest(
            f"{what}: is more than {CONF.k8s_cr.max_wait_timeout:g} seconds; lower it, or let the operator raise [k8s_cr] "
            "max_wait_timeout"
        )
