# SPDX-License-Identifier: Apache-2.0
"""The cloud: OpenStack's own services, whose servers are machines of the bed.

Nothing is a stand-in but the hypervisor and the network hardware. Nova's driver boots a server as systemd-nspawn boots the
bed's Kubernetes node; bridges, namespaces, nftables and HAProxy are what Neutron and Octavia describe.
"""
