# SPDX-License-Identifier: Apache-2.0
"""Management driver of a VNF package: exposes its NodePorts on an external load balancer. See README.md."""

import sys

from k8s_cr_driver.lcm import hook

if __name__ == "__main__":
    sys.exit(hook.run("node_ports", __file__))
