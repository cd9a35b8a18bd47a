# SPDX-License-Identifier: Apache-2.0
"""Sample VNF packages, one folder each, and the command that makes CSAR files of them."""
