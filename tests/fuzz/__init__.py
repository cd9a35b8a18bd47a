# SPDX-License-Identifier: Apache-2.0
"""A fuzz run of what others write: responses, packages, VNFDs, parameters, kubeconfigs, inventories, texts of errors."""
