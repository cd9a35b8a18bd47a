# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a package whose servers become a cluster: operations, masters, the virtual IP, and a request for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli import node_requests, package_input
from k8s_cr_driver.cli.management_drivers import left_out, misplaced
from k8s_cr_driver.cli.output import hint
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.node_clusters import balancers, inventory, parameters
from k8s_cr_driver.node_clusters.groups import Group
from k8s_cr_driver.node_clusters.kubespray import parameters as kubespray
from k8s_cr_driver.node_clusters.kubespray.parameters import Balancer
from k8s_cr_driver.node_clusters.parameters import PARAMETER, Parameters
from k8s_cr_driver.node_clusters.storage import parameters as storage
from k8s_cr_driver.objects.fields import entries, field, mapping, texts
from k8s_cr_driver.package import hot, scripts, vnfd
from k8s_cr_driver.package.hot import Hot

KUBESPRAY = "kubespray"
_SINGLE = "; persistent_volumes takes a single one, without volumes, too"
DRIVERS = {"ha_masters": inventory.MASTERS, "persistent_volumes": 1, KUBESPRAY: 1}
"""Each with the fewest masters of its clusters."""
OPERATIONS = {
    "instantiate_end": "no cluster is made of the servers",
    "scale_start": "nodes that leave are neither drained nor deleted",
    "scale_end": "new servers do not become nodes",
    "heal_start": "a master is replaced while etcd counts on it",
    "heal_end": "new servers do not become nodes",
    "terminate_start": "the cluster stays a VIM",
    "terminate_end": "the parameters stay in the metadata of the VNF instance",
    "instantiate_rollback_end": "the cluster stays a VIM after a failed instantiate",
    "scale_rollback_start": "servers that the rollback removes stay nodes",
}
"""Those that the driver has something to do at, and what is so without it."""


def problems(folder: Path, request: Path | None = None) -> list[str]:
    """A sentence for each mistake. `request`: the body of an instantiate, as JSON."""
    try:
        flavours = vnfd.flavours(folder)
        body = {} if request is None else package_input.body(request)
        chosen = {name: one for name, one in flavours.items() if body.get("flavourId", name) == name}
        makes_cluster = any(scripts.of_driver(template, one) for template in chosen.values() for one in DRIVERS)
        asked, balancer = (None, None) if request is None or not makes_cluster else _parameters(body, chosen)
        found = [one for driver in DRIVERS for one in misplaced(folder, driver, OPERATIONS)]
        for name, template in flavours.items():
            of_request = (asked, balancer) if name in chosen else (None, None)
            found += [f"Flavour {name}: {one}" for one in _of(folder, name, template, *of_request)]
        return found + ([] if asked is None else list(node_requests.problems(folder, body, asked, balancer)))
    except (InvalidPackage, InvalidRequest) as error:
        return str(error).splitlines()


def warnings(folder: Path) -> list[str]:
    """Operations at which a package does not call the driver."""
    return [one for driver in DRIVERS for one in left_out(folder, driver, OPERATIONS)]


def _of(
    folder: Path, flavour: str, template: Mapping[str, Any], asked: Parameters | None, balancer: Balancer | None
) -> Iterator[str]:
    driver = next((one for one in DRIVERS if scripts.of_driver(template, one)), "")
    if not driver:
        return
    found, vdus, least = hot.read(folder, flavour), set(vnfd.vdu_nodes(template)), DRIVERS[driver]
    if not found.top:
        yield f"{hot.FOLDER}/{flavour}: has no template of Heat, so there are no servers to make a cluster of"
        return
    if asked is not None:
        yield from _names(found, vdus, asked, least, is_balanced=driver == KUBESPRAY)
        yield from _beside(found, asked, balancer)
    paired = {vdu for vdu in vdus if found.pairs(vdu)}
    outside = _outside(template, vdus, paired, asked, least)
    masters = ({asked.masters.vdu_id} & vdus if asked else set()) or (paired - outside)
    if not outside and not masters and least > 1:
        yield f"no port of a VDU has allowed_address_pairs; the masters' port needs that of the virtual IP there{_SINGLE}"
    for vdu in sorted(outside or masters):
        if least > 1 or outside or vdu in paired:
            yield from _pairs(found, vdu)
    for vdu in sorted(masters):
        yield from _counts(template, vdu, least)
    for vdu in sorted(outside):
        yield from _too_few(template, vdu)


def _outside(
    template: Mapping[str, Any], vdus: set[str], paired: set[str], asked: Parameters | None, least: int
) -> set[str]:
    """The VDU of load balancers outside the masters: by the request, or by what no masters would be like."""
    if asked is not None:
        return {asked.balancers.group.vdu_id} & vdus if asked.balancers else set()
    counts = {vdu: {count for _, count in _listed(template, vdu)} for vdu in vdus}
    may_be_masters = any(all(count >= least and count % 2 for count in counts[vdu]) for vdu in vdus - paired if counts[vdu])
    return {vdu for vdu in paired if may_be_masters and counts[vdu] == {balancers.COUNT}}


def _pairs(found: Hot, vdu: str) -> Iterator[str]:
    pairs = found.pairs(vdu)
    if not any(isinstance(one, str) or found.of_a_port(one) for one in pairs):
        yield (
            f"VDU {vdu}: no allowed_address_pairs of its port has the address of a port of the top template; give it that of "
            "the virtual IP"
        )


def _counts(template: Mapping[str, Any], vdu: str, least: int) -> Iterator[str]:
    """The number of masters is odd, whatever the level."""
    for name, deltas in _scaled(template, vdu):
        if any(_number(one) % 2 for one in deltas):
            yield f"policy {name}: adds an odd number of masters to {vdu}, which would then have an even one"
    single = _SINGLE if least > 1 else ""
    for name, count in _listed(template, vdu):
        if count < least or count % 2 == 0:
            yield f"policy {name}: {vdu} has {count} masters; etcd needs an odd number, at least {least}{single}"


def _too_few(template: Mapping[str, Any], vdu: str) -> Iterator[str]:
    """The number of load balancers is the same always, whatever the level."""
    for name, _ in _scaled(template, vdu):
        yield f"policy {name}: scales {vdu}; the number of load balancers stays, and such a scale is refused"
    for name, count in _listed(template, vdu):
        if count < balancers.COUNT:
            yield f"policy {name}: {vdu} has {count} load balancers; the virtual IP needs at least {balancers.COUNT}"


def _policies(template: Mapping[str, Any], vdu: str) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Name and properties of each that counts servers of the VDU, and whether it scales them."""
    for entry in entries(template, "policies"):
        for name, policy in entry.items():
            if vdu in texts(policy, "targets"):
                is_delta = str(field(policy, "type")).endswith(".VduScalingAspectDeltas")
                yield name, mapping(policy, "properties"), is_delta


def _scaled(template: Mapping[str, Any], vdu: str) -> Iterator[tuple[str, Iterable[Any]]]:
    """Policies that scale the VDU, each with its deltas."""
    for name, properties, is_delta in _policies(template, vdu):
        if is_delta:
            yield name, mapping(properties, "deltas").values()


def _listed(template: Mapping[str, Any], vdu: str) -> Iterator[tuple[str, int]]:
    """Policies that set a number of servers of the VDU, each with every such number."""
    for name, properties, is_delta in _policies(template, vdu):
        counts = [mapping(properties, "initial_delta"), *mapping(properties, "levels").values()]
        for count in filter(None, map(_number, counts)) if not is_delta else ():
            yield name, count


def _number(value: Any) -> int:
    count = field(value, "number_of_instances")
    return count if type(count) is int else 0


def _names(found: Hot, vdus: Iterable[str], asked: Parameters, least: int, *, is_balanced: bool) -> Iterator[str]:
    """What the request names is in the VNFD and in the templates. is_balanced: a load balancer has the API, and no port."""
    known = sorted(vdus)
    outside = ((balancers.SECTION, asked.balancers.group),) if asked.balancers else ()
    for section, group in (("master_node", asked.masters), ("worker_node", asked.workers), *outside):
        if group.vdu_id and group.vdu_id not in known:
            yield f"{PARAMETER}.{section}.vdu_id: {group.vdu_id} is no VDU{hint(group.vdu_id, known)}"
            continue
        yield from _resources(f"{PARAMETER}.{section}", found, group)
    own = mapping(found.template_of(asked.masters.label)[0], "resources") if least == 1 else {}
    for name in filter(None, (asked.cluster_cp_name, asked.cluster_fip_name)) if not is_balanced else ():
        if name not in found.resources and name not in own:
            yield f"{PARAMETER}.master_node: {name} is no resource of the top template{hint(name, found.resources)}"


def _beside(found: Hot, asked: Parameters, balancer: Balancer | None) -> Iterator[str]:
    """What the sections of persistent volumes and of the load balancer name is in one of the templates."""
    server = asked.storage.server
    named = [(storage.REGISTRATIONS, one.server_cp) for one in asked.storage.registrations]
    if server is not None:
        named += [(storage.SERVER, name) for name in (server.ssh_cp_name, *(one.resource for one in server.volumes))]
    if balancer is not None:
        named += [(kubespray.BALANCER, name) for name in (balancer.ssh_cp_name, balancer.nic_cp_name)]
    known = {name for template in (found.top, *found.nested.values()) for name in mapping(template, "resources")}
    for section, name in dict.fromkeys(named):
        if name not in known:
            yield f"{PARAMETER}.{section}: {name} is no resource of a template{hint(name, sorted(known))}"


def _resources(where: str, found: Hot, group: Group) -> Iterator[str]:
    resources = mapping(found.template_of(group.label)[0], "resources")
    for name in dict.fromkeys((group.ssh_cp_name, group.nic_cp_name)) if resources else ():
        if name not in resources:
            yield f"{where}: {name} is no resource of the template of {group.label}{hint(name, resources)}"


def _parameters(body: Any, flavours: Mapping[str, Mapping[str, Any]]) -> tuple[Parameters, Balancer | None]:
    given = mapping(body, "additionalParams").get(PARAMETER, {})
    if any(scripts.of_driver(template, KUBESPRAY) for template in flavours.values()):
        found = kubespray.read(given, {}, "ID")
        return found.common, found.balancer
    return parameters.read(given, {}, "ID"), None
