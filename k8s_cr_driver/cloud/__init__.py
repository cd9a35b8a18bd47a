# SPDX-License-Identifier: Apache-2.0
"""One OpenStack project over HTTP: what a stack has created, where it is, and what a server printed on its console.

No word of Tacker, SSH or Kubernetes stands here.
"""
