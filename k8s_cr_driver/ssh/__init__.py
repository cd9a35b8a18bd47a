# SPDX-License-Identifier: Apache-2.0
"""Hosts over SSH: commands with a deadline, files that are replaced whole, long steps as units of systemd, host keys.

No word of Tacker, OpenStack or Kubernetes stands here.
"""
