# SPDX-License-Identifier: Apache-2.0
"""Three masters of Heat's servers: one is killed, the API goes on, it is healed; a CNF with a volume; nothing stays."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import openstack
import yaml

from functional_tests import heat_servers
from functional_tests.client import Body, Client
from functional_tests.node_clusters.probe import Probe, seconds_without
from functional_tests.objects import deployment, make
from functional_tests.openstack.clusters import belongings
from functional_tests.openstack.conftest import connection
from functional_tests.openstack.servers import attempt, machine
from functional_tests.packages import Package
from functional_tests.testbed import bed, paths
from functional_tests.testbed.ledger import Ledger
from functional_tests.testbed.openstack import offer
from functional_tests.testbed.processes import until
from functional_tests.testbed.tacker import onboarding
from functional_tests.vnf import Vnf

from . import ha_package
from . import ha_setting as setting
from .ha_setting import AGAIN, ASPECT, EXPORT, MASTERS, STORAGE, VIM, WORKERS, Place
from .script_log import ScriptLog
from .stage import CONSOLE, PATIENCE, Steps

PARTS = ("tacker", "openstack")
# Seconds: of the probe, for the API after a death, and for the cloud to notice that a stack is gone.
LOOK, BACK_WITHIN, GONE_WITHIN = 5.0, 120.0, 120.0
TEXT = "kept by the CNF"
_OPTIONS = """\
[DEFAULT]
log_file = {log}
[k8s_cr_vim_cloud:bed]
clouds_file = {clouds}
keystone = {keystone}
projects = {project}
"""


def play() -> None:
    """The whole demo, on a bed that is up."""
    environment, ledger = bed.environment(), Ledger(paths.STATE)
    client = Client({**os.environ, **environment}, partial(onboarding, ledger))
    tenant = connection(environment, offer.TENANT)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        steps = Steps(ScriptLog(folder / "servers.log"))
        options = _options(folder, environment, tenant)
        with setting.placed(tenant, ledger, folder, options) as place:
            _life(steps, client, tenant, place, folder)
    steps.report()


def _life(steps: Steps, client: Client, tenant: openstack.connection.Connection, place: Place, folder: Path) -> None:
    before, cloud = belongings(tenant), heat_servers.connection_info(tenant)
    with steps.step("Make and onboard VNF packages"):
        packages = [client.onboard(ha_package.make(folder)), client.onboard(_cnf().make(folder / "cnf.csar"))]
    vnf, cnf = (Vnf.create(client, cloud, package["vnfdId"]) for package in packages)
    vnf.patience = cnf.patience = PATIENCE
    try:
        _cluster(steps, client, cloud, place, vnf)
        _volume(steps, client, vnf, cnf)
        with steps.step("Terminate the CNF"):
            cnf.terminate()
        with steps.step("Terminate the cluster"):
            vnf.terminate()
    finally:
        for one in (cnf, vnf):
            one.remove()
        for package in packages:
            client.delete_package(package["id"])
    if not until(lambda: belongings(tenant) == before, GONE_WITHIN):
        raise TimeoutError(f"the cloud still has {belongings(tenant)}")
    left = [one["name"] for one in client.vims() if one["name"] == VIM]
    CONSOLE.print(f"Left in the cloud: nothing. Left of its VIM: {', '.join(left) or 'nothing'}.")


def _cluster(steps: Steps, client: Client, cloud: Body, place: Place, vnf: Vnf) -> None:
    given = setting.request(place)
    with steps.step("Instantiate three masters, a worker and a storage server, which become a cluster"):
        vnf.wait(client.instantiate(vnf.id, cloud, given.pop("additionalParams"), **given))
    _show_nodes(vnf)
    dead = vnf.vnfcs(MASTERS)[0]
    with steps.step(f"Kill the master {dead['id'][:8]}, and ask the API every 50 ms meanwhile"), _probe(vnf).running() as probe:
        probe.watch(0, BACK_WITHIN)
        machine(_server(dead)).cut_off()
        probe.watch(LOOK, BACK_WITHIN)
    CONSOLE.print(f"  without the API for {seconds_without(probe.asked):.1f} s, by {len(probe.asked)} requests", style="green")
    with steps.step("Heal that master"):
        vnf.wait(vnf.begin_heal(dead["id"], **AGAIN))
    _show_nodes(vnf)
    with steps.step("Scale the workers out to 2"):
        vnf.wait(vnf.begin_scale("SCALE_OUT", ASPECT, **AGAIN))
    _show_nodes(vnf)


def _volume(steps: Steps, client: Client, vnf: Vnf, cnf: Vnf) -> None:
    [registered] = [one for one in client.vims() if one["name"] == VIM]
    vim = {"vimId": registered["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}
    with steps.step("Instantiate a CNF on the new VIM, whose Pod writes to a volume"):
        cnf.instantiate(*_cnf().files, vim=vim, namespace="default", wait_timeout=PATIENCE)
    [storage] = vnf.vnfcs(STORAGE)
    CONSOLE.print(f"On the storage server's Cinder volume: {attempt(_server(storage), 'cat', f'{EXPORT}/log')}")
    with steps.step("Scale the workers in to 1"):
        vnf.wait(vnf.begin_scale("SCALE_IN", ASPECT, **AGAIN))
    _show_nodes(vnf)


def _cnf() -> Package:
    claimed = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": {"storage": "32Mi"}}}
    claim = make("v1", "PersistentVolumeClaim", "data", "", spec=claimed)
    web = deployment("web", image="bed.test/web:1")
    pod = web["spec"]["template"]["spec"]
    pod["securityContext"] = {"runAsUser": 65534}
    pod["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    line = f"echo {TEXT} >/data/log; while :; do sleep 3600; done"
    pod["containers"][0] |= {
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-euc", line],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return Package({"claim.yaml": claim, "web.yaml": web}, {"web": "web"})


def _options(folder: Path, environment: bed.Environment, tenant: openstack.connection.Connection) -> str:
    """Of the conductors: where the scripts of packages log, and the Tacker in which clusters become VIMs."""
    names = ("auth_url", "username", "password", "project_name", "user_domain_name", "project_domain_name")
    auth = {name: environment[f"OS_{name.upper()}"] for name in names}
    clouds = folder / "clouds.yaml"
    entry = {"auth_type": "password", "auth": auth, "region_name": environment["OS_REGION_NAME"]}
    clouds.write_text(yaml.safe_dump({"clouds": {"tacker": entry}}))
    keystone, project = tenant.config.config["auth"]["auth_url"], tenant.current_project_id
    return _OPTIONS.format(log=folder / "servers.log", clouds=clouds, keystone=keystone, project=project)


def _probe(vnf: Vnf) -> Probe:
    """Of the API at the virtual IP."""
    interface: dict[str, Any] = vnf.shown()["vimConnectionInfo"][VIM]["interfaceInfo"]
    host, _, port = interface["endpoint"].removeprefix("https://").partition(":")
    return Probe(host, int(port), interface["ssl_ca_cert"])


def _show_nodes(vnf: Vnf) -> None:
    """As a master lists them."""
    for vnfc in vnf.vnfcs(MASTERS):
        shown = attempt(_server(vnfc), "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "nodes")
        if shown:
            counts = f"{len(vnf.vnfcs(MASTERS))} masters, {len(vnf.vnfcs(WORKERS))} workers"
            CONSOLE.print(f"kubectl get nodes, on a master ({counts}):")
            CONSOLE.print(shown)
            return


def _server(vnfc: Body) -> str:
    return str(vnfc["computeResource"]["resourceId"])
