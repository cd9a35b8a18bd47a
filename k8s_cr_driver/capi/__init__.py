# SPDX-License-Identifier: Apache-2.0
"""Cluster API: the classes of clusters, control planes and sets of machines: their Machines, count and order.

Beside these the kinds of the provider for OpenStack. Registered by the entry point `cluster_api`; the engine knows nothing of
them.
"""

from k8s_cr_driver.capi.cluster import Cluster
from k8s_cr_driver.capi.control_plane import ControlPlane, KubeadmControlPlane
from k8s_cr_driver.capi.machines import Machine, MachineDeployment, MachineOwner, MachinePool, MachineSet
from k8s_cr_driver.capi.openstack import OpenStackCluster, OpenStackFloatingIPPool, OpenStackMachine, OpenStackServer

__all__ = [
    "Cluster",
    "ControlPlane",
    "KubeadmControlPlane",
    "Machine",
    "MachineDeployment",
    "MachineOwner",
    "MachinePool",
    "MachineSet",
    "OpenStackCluster",
    "OpenStackFloatingIPPool",
    "OpenStackMachine",
    "OpenStackServer",
]
