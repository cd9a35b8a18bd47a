# SPDX-License-Identifier: Apache-2.0
"""A VNF package: a CSAR folder becomes checked objects; without a cluster."""
