# SPDX-License-Identifier: Apache-2.0
"""The parameters of the Heat templates, as Tacker's own class makes them: each server is a resource of its own."""

from tacker.sol_refactored.infra_drivers.openstack.userdata_standard import StandardUserData

__all__ = ["StandardUserData"]
