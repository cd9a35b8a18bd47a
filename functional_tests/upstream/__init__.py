# SPDX-License-Identifier: Apache-2.0
"""Tacker's own functional tests of its Kubernetes driver, unmodified, on the bed: with that driver and with this one.

They come from Tacker's source distribution and find their configuration in /etc/tacker and beside themselves; both are
shown to them by a mount namespace, so that nothing is written on the host. `python -m functional_tests.upstream` runs
them; `results.csv` is what came of it, and a table in the documents.
"""
