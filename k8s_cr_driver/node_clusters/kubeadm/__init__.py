# SPDX-License-Identifier: Apache-2.0
"""A cluster that kubeadm makes: several masters with stacked etcd behind a virtual IP, and workers."""
