# SPDX-License-Identifier: Apache-2.0
"""Management driver of a VNF package: sends the kubeconfigs of its workload clusters. See README.md."""

import sys

from k8s_cr_driver.lcm import hook

if __name__ == "__main__":
    sys.exit(hook.run("credential_sender", __file__))
