# SPDX-License-Identifier: Apache-2.0
"""What `lcm` uses of Tacker, but for the driver's methods: names with the way they are called, fields of objects, options.

`differences` compares it with the Tacker that is installed, by its signatures and without calling anything. A test compares
it with the source of `lcm`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

_COMMON = "tacker.sol_refactored.common"
_VNFD = f"{_COMMON}.vnfd_utils.Vnfd"
OBJECTS = "tacker.sol_refactored.objects"
CONF = f"{_COMMON}.config.CONF"

NAMES: dict[str, str] = {
    "tacker.context.Context": "user_id=, tenant_id=, roles=, is_admin=, overwrite=",
    "tacker.context.Context.can": "self, rule, fatal=",
    "tacker.context.Context.session": "",
    "tacker.context.get_admin_context": "()",
    "tacker.objects.vnf_package.VnfPackage.get_by_id": "context, id",
    "tacker.objects.vnf_package_vnfd.VnfPackageVnfd.get_by_id": "context, id",
    "tacker.policy.init": "()",
    "tacker.policy._ENFORCER": "",
    f"{_COMMON}.config.CONF": "",
    f"{_COMMON}.exceptions.DbSyncFailed": "",
    f"{_COMMON}.exceptions.DbSyncNoDiff": "",
    f"{_COMMON}.exceptions.OtherOperationInProgress": "inst_id=",
    f"{_COMMON}.exceptions.SolException": "sol_status=, sol_title=, sol_detail=",
    f"{_COMMON}.vim_utils.get_vim": "context, vim_id",
    f"{_COMMON}.vnf_instance_utils.get_inst": "context, inst_id",
    f"{_COMMON}.vnf_instance_utils.select_vim_info": "vim_connection_info",
    f"{_VNFD}.get_vnfd_flavour": "self, flavour_id",
    f"{_VNFD}.get_vdu_nodes": "self, flavour_id",
    f"{_VNFD}.get_scale_vdu_and_num": "self, flavour_id, aspect_id",
    f"{_VNFD}.get_policy_values_by_type": "self, flavour_id, policy_type",
    "tacker.sol_refactored.infra_drivers.kubernetes.kubernetes.Kubernetes": "()",
    "tacker.sol_refactored.nfvo.nfvo_client.NfvoClient": "()",
    "tacker.sol_refactored.nfvo.nfvo_client.NfvoClient.get_vnfd": "self, context, vnfd_id",
    f"{OBJECTS}.GrantRequestV1.get_by_filter": "context, vnfLcmOpOccId=",
    f"{OBJECTS}.VnfInstanceV2.get_by_id": "context, id",
    f"{OBJECTS}.VnfLcmOpOccV2.get_by_filter": "context, vnfInstanceId=, operationState=",
    f"{OBJECTS}.VnfLcmOpOccV2.get_by_id": "context, id",
    f"{OBJECTS}.v2.fields.LcmOperationStateType.FAILED_TEMP": "",
    f"{OBJECTS}.v2.fields.LcmOperationStateType.PROCESSING": "",
    f"{OBJECTS}.v2.fields.LcmOperationStateType.ROLLING_BACK": "",
    f"{OBJECTS}.v2.fields.LcmOperationStateType.STARTING": "",
    "tacker.vnfm.infra_drivers.kubernetes.kubernetes_driver.Kubernetes": "()",
}
"""Dotted name -> the arguments with which it is called, a keyword as `name=`; "()" for a call without any, "" for no call."""

FIELDS: dict[str, str] = {
    "ChangeCurrentVnfPkgRequest": "vnfdId additionalParams",
    "GrantRequestV1": "vnfLcmOpOccId removeResources additionalParams",
    "GrantV1": "removeResources",
    "HealVnfRequest": "vnfcInstanceId additionalParams",
    "InstantiateVnfRequest": "flavourId instantiationLevelId additionalParams",
    "ResourceHandle": "resourceId vimLevelResourceType",
    "ScaleInfoV2": "aspectId scaleLevel",
    "ScaleVnfRequest": "type aspectId numberOfSteps additionalParams",
    "TerminateVnfRequest": "terminationType gracefulTerminationTimeout additionalParams",
    "VimConnectionInfo": "vimId interfaceInfo accessInfo",
    "VnfInstanceV2": "id vnfdId vimConnectionInfo instantiatedVnfInfo",
    "VnfInstanceV2_InstantiatedVnfInfo": "flavourId vnfState metadata scaleStatus maxScaleLevels vnfcResourceInfo vnfcInfo",
    "VnfLcmOpOccV2": "operationState stateEnteredTime error",
    "VnfcInfoV2": "id vduId vnfcResourceInfoId vnfcState",
    "VnfcResourceInfoV2": "id vduId computeResource metadata",
    "tacker.objects.vnf_package.VnfPackage": "tenant_id",
    "tacker.objects.vnf_package_vnfd.VnfPackageVnfd": "package_uuid",
}
"""Class, in `tacker.sol_refactored.objects` without a module -> its fields that are read or written."""

OPTIONS: dict[str, tuple[str, ...]] = {
    "DEFAULT": ("db_synchronization_interval",),
    "v2_vnfm": ("default_graceful_termination_timeout", "kubernetes_vim_rsc_wait_timeout"),
}
"""Group of tacker.conf -> Tacker's options in it."""


def differences() -> list[str]:
    """How the installed Tacker differs from these tables, one text for each name."""
    importlib.import_module(OBJECTS).register_all()
    importlib.import_module("tacker.conf")  # registers the options of the conductor
    return [*_of_names(), *_of_fields(), *_of_options()]


def _of_names() -> Iterator[str]:
    for name, call in NAMES.items():
        try:
            found = _found(name)
        except (ImportError, AttributeError):
            yield f"it has no {name}"
            continue
        if call and (why := _why_not(found, call)):
            yield f"its {name} cannot be called with ({call.strip('()')}): {why}"


def _found(name: str) -> Any:
    """What a dotted name means: an attribute of the longest part that is a module."""
    module, _, attributes = name.rpartition(".")
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ImportError:
            module, _, rest = module.rpartition(".")
            attributes = f"{rest}.{attributes}"
            if not module:
                raise
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found


def _why_not(found: Any, call: str) -> str:
    """Why it cannot be called so; "" if it can, or if it has no signature."""
    given = [one for one in call.strip("()").split(", ") if one]
    keywords = {one.removesuffix("=") for one in given if one.endswith("=")}
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError) as error:
        return "it is no function" if isinstance(error, TypeError) else ""
    try:
        signature.bind(*(one for one in given if not one.endswith("=")), **dict.fromkeys(keywords))
    except TypeError as error:
        return f"{error}"
    return ""


def _of_fields() -> Iterator[str]:
    for kind, fields in FIELDS.items():
        name = kind if "." in kind else f"{OBJECTS}.{kind}"
        try:
            present = _found(name).fields
        except (ImportError, AttributeError):
            yield f"it has no {name}"
            continue
        if missing := [one for one in fields.split() if one not in present]:
            yield f"its {name} has no field {', '.join(missing)}"


def _of_options() -> Iterator[str]:
    conf = _found(CONF)
    for group, names in OPTIONS.items():
        options = conf if group == "DEFAULT" else conf.get(group, {})
        yield from (f"it has no option [{group}] {name}" for name in names if name not in options)
