# SPDX-License-Identifier: Apache-2.0
"""The operations of the Vnflcm interface at which a VNFD names the credential sender (ETSI NFV-SOL 001 clause 6.7)."""

from __future__ import annotations

GOING = "terminate_start"
"""Before it the instance's clusters are still there."""
ENDS = ("terminate_end", "instantiate_rollback_end")
"""After these the instance has no clusters."""
_NOT_IN_SOL001 = ("change_current_package_end", "scale_rollback_end", "change_current_package_rollback_end")
CHANGES = ("instantiate_end", "scale_end", "heal_end", *_NOT_IN_SOL001)
"""After these the instance may have other clusters, or other kubeconfigs."""
UNDECLARED = (*_NOT_IN_SOL001, "instantiate_rollback_end")
"""Those that SOL001's type file does not declare; a package's own node type has to."""
HANDLED = (*CHANGES, GOING, *ENDS)
