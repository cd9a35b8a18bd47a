# SPDX-License-Identifier: Apache-2.0
"""The desired objects of one verb: the manifests of a VNF package with parameters filled in, and the objects of its VDUs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacker.sol_refactored.common import config

from k8s_cr_driver import logs
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.lcm import intree_driver, request
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.lcm.remote_manifests import RemoteManifests
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import health_rules, helm_hooks, manifests, parameters, reserved_marks, substitution, tosca_meta
from k8s_cr_driver.package.files import Fetch
from k8s_cr_driver.package.limits import Limits
from k8s_cr_driver.redaction import redact, words
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf import vdus
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.vdus import VduObjects

CONF = config.CONF
LOG = logs.logger(__name__)
_MOST_WARNINGS = 20
"""Of a package, which anybody may have written, in the log of an operation."""


def load(
    stored: StoredInstance,
    vnfd: Any,
    options: Options,
    given: Mapping[str, Any] | None = None,
    *,
    stand_ins: Mapping[str, Any] | None = None,
    fetch: Fetch | None = None,
    in_place: bool = False,
) -> tuple[list[Object], Options]:
    """The package's objects, and the options with the parameters that the package declares.

    `in_place`: the package is the one of the instance, see `manifests.load`.

    `given` are the parameters of a change of the package, which the new package must declare. Stored parameters that it
    does not declare are dropped. `fetch` reads URLs. With `stand_ins`, values need not meet constraints, and these are for
    references that have neither a value nor a default.
    """
    declared = parameters.declared(vnfd.definitions) if stand_ins is None else _unconstrained(vnfd)
    if given is not None:
        kept = {name: value for name, value in options.parameters.items() if name in declared or name in given}
        options = replace(options, parameters=kept)
    values = parameters.resolve(declared, options.parameters)
    for name, value in (stand_ins or {}).items():
        declared[name] = replace(declared[name], default=value)
    warnings: list[str] = []
    objects = manifests.load(
        Path(vnfd.csar_dir),
        options.files,
        fill=substitution.filler(declared, values),
        fetch=fetch or _fetch(),
        limits=Limits(CONF.k8s_cr.max_objects, CONF.k8s_cr.max_kinds, CONF.k8s_cr.max_replicas),
        in_place=in_place,
        rules_file=health_rules.file(vnfd.definitions),
        warn=warnings.append,
    )
    warnings += helm_hooks.warnings(objects, are_applied=options.helm_hooks)
    for text in warnings[:_MOST_WARNINGS] if stand_ins is None else ():
        LOG.warning("VNF instance %s: %s", stored.id, redact(text))
    if not options.helm_hooks:
        objects = helm_hooks.applied(objects)
    if options.adopt_existing:
        reserved_marks.check_adoptable(objects)
    return intree_driver.placed(stored, objects, options.namespace), options


def _fetch() -> Fetch:
    """Reads each URL once."""
    return functools.cache(RemoteManifests(CONF.k8s_cr.allow_remote_manifests))


def of_change(
    stored: StoredInstance, vnfd: Any, options: Options, given: Mapping[str, Any]
) -> tuple[list[Object], Options, list[Object]]:
    """What `load` returns, and the same objects with the parameters before the change: of one content of each URL."""
    fetch = _fetch()
    objects, options = load(stored, vnfd, options, given, fetch=fetch)
    former = _with_stored_parameters(stored, vnfd, options, fetch) if given else None
    return objects, options, former or objects


def of_failed_instantiate(stored: StoredInstance, vnfd: Any, req: Any) -> list[Object]:
    """
    The objects that a failed instantiate may have written; none if the package cannot be loaded.

    None with adopt-existing either: only the inventory says which objects the instance has adopted, and these must stay.
    """
    try:
        options = Options().updated(request.params(req))
        return [] if options.adopt_existing else load(stored, vnfd, options)[0]
    except Exception as error:  # whatever is wrong with the package: a rollback needs none
        LOG.warning("The package cannot be loaded, so only what the inventory names is rolled back: %s", words(error))
        return []


def _with_stored_parameters(
    stored: StoredInstance, vnfd: Any, options: Options, fetch: Fetch
) -> list[Object] | None:
    """
    The package's objects with the parameters of the last change; None if the package does not accept them.

    A parameter that was not given before had its default, or that of a reference, or else another value than now: a count
    from it is a new one. The package may forbid a former value now; one that its type does not allow is taken for not given.
    """
    declared, given = _unconstrained(vnfd), options.parameters.items()
    former = stored.options.parameters.items()
    before = {name: value for name, value in former if name in declared and not parameters.wrong(declared[name], value)}
    others = {name: value for name, value in given if name not in before and declared[name].default is None}
    for step in (-1, 1):  # with the one number or the other, names must differ, too
        another = {name: _another(value, step) for name, value in others.items()}
        kept = {name: before[name] for name, _ in given if name in before}
        kept |= {name: value for name, value in another.items() if declared[name].must_be_given}
        with contextlib.suppress(InvalidRequest, InvalidPackage):
            return load(stored, vnfd, replace(options, parameters=kept), stand_ins=another, fetch=fetch)[0]
    return None


def _another(value: Any, step: int) -> Any:
    """A number that is not this one; what is no number gives no count."""
    return value + step if isinstance(value, int) and not isinstance(value, bool) else value


def _unconstrained(vnfd: Any) -> dict[str, parameters.Declaration]:
    return {name: replace(one, constraints=()) for name, one in parameters.declared(vnfd.definitions).items()}


def assigned_vdus(
    resources: list[CustomResource], vnfd: Any, flavour: str, options: Options
) -> dict[str, CustomResource]:
    """VDU id -> its object."""
    partial = tosca_meta.leaves_out(Path(vnfd.csar_dir), options.files)
    return vdus.assign(resources, vnfd.get_vdu_nodes(flavour), partial=partial)


def merged(resources: Sequence[CustomResource], assigned: VduObjects) -> list[CustomResource]:
    """`resources` with the counts of the VDUs' objects."""
    changed = {obj.key: obj for obj in vdus.whole_objects(assigned)}
    return [changed.get(obj.key, obj) for obj in resources]
