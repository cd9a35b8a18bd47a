# SPDX-License-Identifier: Apache-2.0
"""How a command ends that fails: one message without a traceback, and the exit code of the outcome."""

from __future__ import annotations

import errno
import sys
from typing import Any

import click

from k8s_cr_driver.cli import INTERRUPTED
from k8s_cr_driver.errors import DriverError, InvalidPackage, InvalidRequest
from k8s_cr_driver.redaction import one_line, redact


class _ClusterFailure(click.ClickException):
    exit_code = 3


class Command(click.Command):
    """Turns errors into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (InvalidPackage, InvalidRequest) as error:
            raise click.ClickException(redact(str(error))) from None
        except DriverError as error:
            raise _ClusterFailure(redact(str(error))) from None
        except (KeyboardInterrupt, click.Abort):
            click.echo("\nInterrupted", file=sys.stderr)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click knows what a closed pipe means
            raise click.ClickException(_of_a_file(error, ctx.command_path)) from None


def _of_a_file(error: OSError, command: str) -> str:
    """Of two files, such as of a rename, the second is the one that the user named."""
    return one_line(f"{error.filename2 or error.filename or command}: {error.strerror or error}")
