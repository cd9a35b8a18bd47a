# SPDX-License-Identifier: Apache-2.0
"""A VNF instance with Tacker's own objects, whose verbs are called as Tacker's conductor calls them, and its package."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from oslo_config import cfg
from tacker.sol_refactored import objects
from tacker.sol_refactored.common.vnfd_utils import Vnfd
from tacker.sol_refactored.infra_drivers.kubernetes import kubernetes

from k8s_cr_driver.lcm import conf
from k8s_cr_driver.lcm.driver import Driver
from tests.fake_api import FakeApi
from tests.instance import BLUE

objects.register_all()
conf.register(cfg.CONF)
cfg.CONF.set_override("allowed_endpoints", ["127.0.0.1", "localhost"], "k8s_cr")
cfg.CONF.set_override("allow_http_endpoints", True, "k8s_cr")

INTREE_DRIVER = kubernetes.Kubernetes
"""Read at the import, before any test registers this driver in its place."""


class Instance:
    """A VNF instance of a package whose only flavour has one VDU, named `web`, with a scaling aspect in steps of two."""

    driver: type = Driver

    def __init__(self, api: FakeApi, folder: Path, manifests: list[dict[str, Any]], **package: Any) -> None:
        self.inst = objects.VnfInstanceV2(
            id=BLUE,
            vimConnectionInfo={
                "vim1": objects.VimConnectionInfo.from_dict(
                    {
                        "vimType": "ETSINFV.KUBERNETES.V_1",
                        "interfaceInfo": {"endpoint": api.url},
                        "accessInfo": {"bearer_token": "token"},
                    }
                )
            },
        )
        self.vnfd = make_vnfd(folder, manifests, **package)
        self.grant_req = grant("1")
        self._folders = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(1))

    def instantiate(self, level: str = "", **params: Any) -> None:
        params = {"lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml"], "wait-timeout": 60, **params}
        body = {"flavourId": "simple", "additionalParams": params, **({"instantiationLevelId": level} if level else {})}
        self._req = req = objects.InstantiateVnfRequest.from_dict(body)
        self.driver().instantiate(req, self.inst, self.grant_req, None, self.vnfd)

    def roll_back_instantiate(self) -> None:
        """As Tacker stores it after a failed instantiate: as it was before."""
        self.inst = objects.VnfInstanceV2(id=BLUE, vimConnectionInfo=self.inst.vimConnectionInfo)
        self.driver().instantiate_rollback(self._req, self.inst, self.grant_req, None, self.vnfd)

    def scale(
        self, type_: str, steps: int = 1, requested: Sequence[str] = (), granted: Sequence[str] | None = None, **params: Any
    ) -> None:
        """`requested`: the VNFCs in Tacker's request for the grant; `granted`: those in the NFVO's grant, if it names any."""
        body = {"type": type_, "aspectId": "web", "numberOfSteps": steps, "additionalParams": params}
        req = objects.ScaleVnfRequest.from_dict(body)
        asked = grant(*(requested or map(str, range(2 * steps))))
        answer = None if granted is None else objects.GrantV1(removeResources=[_granted(one) for one in granted])
        self.driver().scale(req, self.inst, asked, answer, self.vnfd)

    def heal(self, *vnfcs: str, **params: Any) -> None:
        """The VNFCs of these ids; all if none is named."""
        chosen = {"vnfcInstanceId": [f"Web-{one}" for one in vnfcs]} if vnfcs else {}
        req = objects.HealVnfRequest.from_dict({**chosen, "additionalParams": params})
        found = vnfcs or [vnfc.id for vnfc in self.inst.instantiatedVnfInfo.vnfcResourceInfo]
        self.driver().heal(req, self.inst, grant(*found), None, self.vnfd)

    def change(self, vnfd: Vnfd, **params: Any) -> None:
        params = {"upgrade_type": "RollingUpdate", "vdu_params": [], "wait-timeout": 60, **params}
        req = objects.ChangeCurrentVnfPkgRequest.from_dict({"vnfdId": "new", "additionalParams": params})
        self.driver().change_vnfpkg(req, self.inst, self.grant_req, None, vnfd)

    def package(self, manifests: list[dict[str, Any]], **package: Any) -> Vnfd:
        """Another one for it."""
        return make_vnfd(next(self._folders), manifests, **package)

    def roll_back_change(self) -> None:
        req = objects.ChangeCurrentVnfPkgRequest.from_dict({"vnfdId": "new", "additionalParams": {}})
        self.driver().change_vnfpkg_rollback(req, self.inst, self.grant_req, None, self.vnfd)

    def terminate(self, type_: str = "FORCEFUL", grace_period: int = 1, **params: Any) -> None:
        body = {"terminationType": type_, "gracefulTerminationTimeout": grace_period, "additionalParams": params}
        req = objects.TerminateVnfRequest.from_dict(body)
        self.driver().terminate(req, self.inst, self.grant_req, None, self.vnfd)


def instantiated(api: FakeApi, folder: Path, manifests: list[dict[str, Any]], **package: Any) -> Instance:
    made = Instance(api, folder, manifests, **package)
    made.instantiate()
    return made


def _granted(vnfc: str) -> objects.GrantInfoV1:
    return objects.GrantInfoV1(resourceDefinitionId=vnfc)


def grant(*vnfcs: str) -> objects.GrantRequestV1:
    """For VNFCs of the VDU that come or go, as the operation means."""
    resources = [
        objects.ResourceDefinitionV1(
            id=one, type="COMPUTE", resourceTemplateId="Web", resource=objects.ResourceHandle(resourceId=one)
        )
        for one in vnfcs
    ]
    return objects.GrantRequestV1(vnfLcmOpOccId="operation", addResources=resources, removeResources=resources)


def make_vnfd(
    folder: Path,
    manifests: list[dict[str, Any]],
    *,
    flavour: str = "simple",
    vdus: dict[str, str] | None = None,
    aspects: dict[str, list[str]] | None = None,
    initial: int | None = None,
    levels: Mapping[Any, int | None] | None = None,
    delta: int = 2,
    highest: int = 5,
    parameters: dict[str, Any] | None = None,
) -> Vnfd:
    """`vdus`: id -> name of the object; `aspects`: id -> VDUs, `highest` steps of `delta`; `initial`: instances at level 0;
    `levels`: instantiation level -> instances of each VDU, the first level is the default.
    """
    vdus, aspects = vdus or {"Web": "web"}, aspects or {"web": ["Web"]}
    for name in ("TOSCA-Metadata", "Definitions", "Files/kubernetes"):
        (folder / name).mkdir(parents=True)
    (folder / "TOSCA-Metadata/TOSCA.meta").write_text("TOSCA-Meta-File-Version: 1.0\n\nName: Files/kubernetes/all.yaml\n")
    (folder / "Files/kubernetes/all.yaml").write_text(yaml.safe_dump_all(manifests))
    scaling = {aspect: {"max_scale_level": highest, "step_deltas": ["one"]} for aspect in aspects}
    policies = [{"aspects": _policy("ScalingAspects", aspects=scaling)}]
    for aspect, targets in aspects.items():
        deltas = _policy("VduScalingAspectDeltas", aspect=aspect, deltas={"one": {"number_of_instances": delta}})
        policies.append({f"{aspect}_deltas": {**deltas, "targets": targets}})
    if initial is not None:
        delta = _policy("VduInitialDelta", initial_delta={"number_of_instances": initial})
        policies.append({"initial": {**delta, "targets": list(vdus)}})
    if levels:
        counts = {level: {} if count is None else {"number_of_instances": count} for level, count in levels.items()}
        policies.append({"levels": _policy("InstantiationLevels", levels=counts, default_level=next(iter(levels)))})
        policies.append({"counts": {**_policy("VduInstantiationLevels", levels=counts), "targets": list(vdus)}})
    template = {
        "substitution_mappings": {"node_type": "test.VNF", "properties": {"flavour_id": flavour}},
        "node_templates": {
            vdu: {"type": "tosca.nodes.nfv.Vdu.Compute", "properties": {"name": name}} for vdu, name in vdus.items()
        },
        "policies": policies,
    }
    inputs = {"additional_parameters": {"type": "test.Instantiate"}}
    vnflcm = {"type": "tosca.interfaces.nfv.Vnflcm", "instantiate": {"inputs": inputs}}
    definitions = {
        "topology_template": template,
        "node_types": {"test.VNF": {"derived_from": "tosca.nodes.nfv.VNF", "interfaces": {"Vnflcm": vnflcm}}},
        "data_types": {
            "test.Instantiate": {"properties": {"parameters": {"type": "test.Parameters"}}},
            "test.Parameters": {"properties": parameters or {}},
        },
    }
    (folder / "Definitions/vnfd.yaml").write_text(yaml.safe_dump(definitions))
    vnfd = Vnfd("vnfd")
    vnfd.init_from_csar_dir(str(folder))
    return vnfd


def _policy(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": f"tosca.policies.nfv.{name}", "properties": properties}
