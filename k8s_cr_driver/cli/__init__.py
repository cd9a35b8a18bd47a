# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr`: the tool of package authors and operators."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def main() -> None:
    """Runs the tool. The import of its commands takes seconds, in which Ctrl-C ends it as it does later."""
    try:
        from k8s_cr_driver.cli import commands
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted\n")
        sys.exit(INTERRUPTED)
    commands.main()
