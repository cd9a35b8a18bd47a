# SPDX-License-Identifier: Apache-2.0
"""Octavia provider that runs in the API's process: once a change is committed, it is reported as done, and wakes the agent.

The provider is called before the API commits, so a thread waits until the load balancer reads PENDING_*. Octavia marks parents
as pending with their children, so the whole tree is settled: a listener that stays pending would refuse each later change.
"""

import threading
import time
from typing import Any

from octavia.api.drivers.driver_agent import driver_updater
from octavia.api.drivers.noop_driver import driver as noop
from octavia.db import api as database
from octavia.db import repositories
from oslo_log import log

from functional_tests.testbed.openstack import notice

LOG = log.getLogger(__name__)
DONE = {"provisioning_status": "ACTIVE", "operating_status": "ONLINE"}
GONE = {"provisioning_status": "DELETED", "operating_status": "OFFLINE"}
# Seconds within which the API commits, or has failed.
PATIENCE = 10.0

# Of an object, which repository knows its parent, and the parent's attribute, from the leaves to the root.
_PARENTS = (
    ("l7rule_id", repositories.L7RuleRepository, "l7policy_id"),
    ("l7policy_id", repositories.L7PolicyRepository, "listener_id"),
    ("member_id", repositories.MemberRepository, "pool_id"),
    ("healthmonitor_id", repositories.HealthMonitorRepository, "pool_id"),
    ("pool_id", repositories.PoolRepository, "load_balancer_id"),
    ("listener_id", repositories.ListenerRepository, "load_balancer_id"),
)


class Provider(noop.NoopProviderDriver):  # type: ignore[misc]
    """Leaves the virtual IP's port to Octavia, so that it is Neutron's."""

    def create_vip_port(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    def loadbalancer_failover(self, loadbalancer_id: str) -> None:
        _settle_soon(loadbalancer_id)

    def member_batch_update(self, pool_id: str, members: Any) -> None:
        _settle_soon(_parent(repositories.PoolRepository, pool_id, "load_balancer_id"))


def _changed(self: Provider, subject: Any, *others: Any, **kwargs: Any) -> None:
    _settle_soon(_load_balancer_of(subject))


for _kind in ("loadbalancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule"):
    for _verb in ("create", "update", "delete"):
        setattr(Provider, f"{_kind}_{_verb}", _changed)


def _load_balancer_of(subject: Any) -> str:
    """The id of the load balancer that an object of the provider's API belongs to."""
    known = {name: value for name, value in vars(subject).items() if isinstance(value, str)}
    for own, repository, attribute in _PARENTS:
        name = attribute.replace("load_balancer", "loadbalancer")
        if own in known and name not in known:
            known[name] = _parent(repository, known[own], attribute)
    return known["loadbalancer_id"]


def _parent(repository: Any, identifier: str, attribute: str) -> str:
    with database.session().begin() as session:
        return str(getattr(repository().get(session, id=identifier), attribute))


def _settle_soon(identifier: str) -> None:
    threading.Thread(target=_settle, args=(identifier,), daemon=True).start()


def _settle(identifier: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(0.1)
        try:
            if status := _settled(identifier):
                driver_updater.DriverUpdater().update_loadbalancer_status(status)
                notice.send()
                return
        except Exception:
            LOG.exception("The load balancer %s cannot be settled", identifier)


def _settled(identifier: str) -> dict[str, list[dict[str, str]]]:
    """What to report of the load balancer and all that is under it; empty before the change is committed."""
    with database.session().begin() as session:
        balancer = repositories.LoadBalancerRepository().get(session, id=identifier)
        if balancer is None or not balancer.provisioning_status.startswith("PENDING"):
            return {}
        gone = balancer.provisioning_status == "PENDING_DELETE"
        status = {
            kind: [
                {"id": one.id, **(GONE if gone or one.provisioning_status == "PENDING_DELETE" else DONE)}
                for one in found
                if gone or one.provisioning_status.startswith("PENDING")
            ]
            for kind, found in _below(balancer).items()
        }
        return {**status, "loadbalancers": [{"id": identifier, **(GONE if gone else DONE)}]}


def _below(balancer: Any) -> dict[str, list[Any]]:
    policies = [policy for listener in balancer.listeners for policy in listener.l7policies]
    return {
        "members": [member for pool in balancer.pools for member in pool.members],
        "healthmonitors": [pool.health_monitor for pool in balancer.pools if pool.health_monitor],
        "l7rules": [rule for policy in policies for rule in policy.l7rules],
        "l7policies": policies,
        "listeners": balancer.listeners,
        "pools": balancer.pools,
    }
