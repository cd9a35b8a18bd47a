# SPDX-License-Identifier: Apache-2.0
"""A cluster of servers, which becomes a VIM, with a CNF on it: the whole way, with nodes that run pods."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from functional_tests.client import Body
from functional_tests.objects import deployment
from functional_tests.openstack.clusters import SECRET, parameters, release
from functional_tests.packages import Package
from functional_tests.sample_onboarding import Sample
from functional_tests.testbed import bed, paths
from functional_tests.testbed.kubernetes import Kubernetes
from functional_tests.testbed.ledger import Ledger
from functional_tests.testbed.processes import until
from functional_tests.testbed.release import FORMER, NEWEST

from .stage import CONSOLE, Stage

PARTS = ("kubernetes", "tacker", "openstack")
PROVIDER = "openstack"
MANAGEMENT, WORKLOAD = "cluster_api_management", "cluster_api_workload_openstack"
SAMPLES = (MANAGEMENT, WORKLOAD)
REGISTERS = True
NAMESPACE = "edge"
REGISTERED = 60
"""Seconds for the receiver and Tacker's server to open a cluster."""
CNF = Package({"web.yaml": deployment("web", replicas=2, image="bed.test/web:1")}, {"web": "web"})


def run(stage: Stage) -> None:
    kubernetes = Kubernetes(Ledger(paths.STATE))
    with stage.step("Instantiate cluster_api_management: cert-manager, Cluster API and its provider for OpenStack"):
        stage.instantiate("management", MANAGEMENT)
    _put_credentials(kubernetes)
    with stage.step(f"Instantiate oak: Kubernetes {FORMER.version} on servers, one control plane and one worker"):
        stage.instantiate("oak", WORKLOAD, namespace=NAMESPACE, parameters=parameters("oak", **release(FORMER)))
    oak = stage.vnfs["oak"]
    stage.show_received()
    [kubeconfig] = stage.receiver.kubeconfigs
    show_nodes = partial(_show_nodes, kubernetes, kubeconfig)
    show_nodes()
    with stage.step("Wait until oak is a VIM"):
        vim = _vim(stage, oak.id)
    with stage.step("Instantiate a CNF on oak, and scale it out"):
        stage.samples["cnf"] = _onboard_cnf(stage)
        stage.connection, management = vim, stage.connection
        stage.instantiate("cnf", "cnf", namespace="default")
        stage.connection = management
        stage.vnfs["cnf"].scale_out("web")
    CONSOLE.print(kubernetes.kubectl(f"--kubeconfig={kubeconfig}", "get", "pods", "--output=wide"))
    with stage.step("Scale the workers of oak out to 2"):
        oak.scale_out("workers")
    with stage.step(f"Upgrade oak to Kubernetes {NEWEST.version}"):
        stage.change("oak", WORKLOAD, **release(NEWEST))
    show_nodes()
    with stage.step("Heal a worker of oak"):
        oak.heal(oak.vnfcs("Workers")[0]["id"])
    stage.show_vnfcs("oak")
    with stage.step("Terminate the CNF"):
        stage.terminate("cnf")
    with stage.step("Terminate oak"):
        stage.terminate("oak")
    stage.show_received()
    with stage.step("Terminate the management cluster"):
        stage.terminate("management")
    kubernetes.kubectl("delete", "namespace", NAMESPACE)


def _put_credentials(kubernetes: Kubernetes) -> None:
    """What an operator does once: the Secret that the package names."""
    clouds = bed.environments()["openstack"]["OS_CLIENT_CONFIG_FILE"]
    kubernetes.kubectl("create", "namespace", NAMESPACE)
    kubernetes.kubectl("create", "secret", "generic", SECRET, f"--namespace={NAMESPACE}", f"--from-file=clouds.yaml={clouds}")


def _show_nodes(kubernetes: Kubernetes, kubeconfig: Path) -> None:
    CONSOLE.print("kubectl get nodes, with the kubeconfig that was received:")
    CONSOLE.print(kubernetes.kubectl(f"--kubeconfig={kubeconfig}", "get", "nodes"))


def _vim(stage: Stage, instance: str) -> Body:
    def registered() -> Any:
        return next((vim for vim in stage.client.vims() if vim["name"].endswith(instance)), None)

    if not (vim := until(registered, REGISTERED)):
        raise TimeoutError(f"the cluster is no VIM after {REGISTERED} s:\n{stage.receiver.log}")
    return {"vimId": vim["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}


def _onboard_cnf(stage: Stage) -> Sample:
    with tempfile.TemporaryDirectory() as work:
        info = stage.client.onboard(CNF.make(Path(work, "cnf.csar")))
    return Sample(info["id"], info["vnfdId"], list(CNF.files))
