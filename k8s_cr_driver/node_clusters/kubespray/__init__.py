# SPDX-License-Identifier: Apache-2.0
"""Clusters that kubespray makes: its playbooks run on an Ansible server, and an external load balancer has the API.

https://github.com/kubernetes-sigs/kubespray
"""
