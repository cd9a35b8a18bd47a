# SPDX-License-Identifier: Apache-2.0
"""Management driver of a VNF package: makes a Kubernetes cluster with volumes over NFS of its servers. See README.md."""

import sys

from k8s_cr_driver.lcm import hook

if __name__ == "__main__":
    sys.exit(hook.run("persistent_volumes", __file__))
