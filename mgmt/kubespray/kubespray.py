# SPDX-License-Identifier: Apache-2.0
"""Management driver of a VNF package: makes a Kubernetes cluster of its servers by kubespray. See README.md."""

import sys

from k8s_cr_driver.lcm import hook

if __name__ == "__main__":
    sys.exit(hook.run("kubespray", __file__))
