# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes and a real Tacker on this host, made from packages alone, for the functional tests and the demo.

`python -m functional_tests.testbed up` starts them, `down` removes every trace. Binaries and root folders are built
once and cached outside the checkout (see `paths`).
"""
