# SPDX-License-Identifier: Apache-2.0
"""A custom resource, a management cluster, and two workload clusters of simulated machines.

The API servers of those run no pods and issue no tokens, so they become no VIMs: see `on_openstack`.
"""

from __future__ import annotations

from .stage import Stage

PARTS = ("kubernetes", "tacker")
PROVIDER = "in-memory"
MANAGEMENT, WORKLOAD = "cluster_api_management", "cluster_api_workload"
SAMPLES = ("crontab", MANAGEMENT, WORKLOAD)
WORKLOADS = {"red": {"WORKERS": 2}, "green": {"WORKERS": 2, "MACHINE_STARTUP": "1s"}}
REGISTERS = False
"""Does the receiver register VIMs?"""


def run(stage: Stage) -> None:
    with stage.step("Instantiate crontab: a CRD and a custom resource of it"):
        stage.instantiate("crontab", "crontab")
    with stage.step("Instantiate cluster_api_management: cert-manager and Cluster API"):
        stage.instantiate("management", MANAGEMENT)
    with stage.step("Instantiate two workload clusters at once, which send their kubeconfigs"):
        begun = {
            name: stage.begin(name, WORKLOAD, parameters={"CLUSTER_NAME": name, **given}) for name, given in WORKLOADS.items()
        }
        for name, operation in begun.items():
            stage.vnfs[name].wait(operation)
    stage.show_received()
    red = stage.vnfs["red"]
    with stage.step("Scale the workers of red out to 3"):
        red.scale_out("workers")
    stage.show_vnfcs("red")
    with stage.step("Scale the workers of red in to 2"):
        red.scale_in("workers")
    with stage.step("Upgrade red to Kubernetes v1.36.4"):
        stage.change("red", WORKLOAD, KUBERNETES_VERSION="v1.36.4")
    with stage.step("Heal a worker of red"):
        red.heal(red.vnfcs("Workers")[0]["id"])
    stage.show_vnfcs("red")
    with stage.step("Terminate both workload clusters"):
        stage.terminate(*WORKLOADS)
    stage.show_received()
    with stage.step("Terminate the management cluster and crontab"):
        stage.terminate("management", "crontab")
