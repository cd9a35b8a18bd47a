# SPDX-License-Identifier: Apache-2.0
"""The commands of `k8s-cr`.

One module for each command. An error is one message without a traceback, and the exit code names one of five outcomes.
"""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from typing import Any

import click

with warnings.catch_warnings():
    # oslo.utils before 10.2 imports eventlet wherever it is installed, as beside Tacker, and eventlet warns every user
    warnings.filterwarnings("ignore", "\nEventlet is deprecated")
    from k8s_cr_driver.cli import failures
    from k8s_cr_driver.cli.check_package import check_package
    from k8s_cr_driver.cli.confirm import confirm
    from k8s_cr_driver.cli.diff import diff
    from k8s_cr_driver.cli.health import health
    from k8s_cr_driver.cli.init import init
    from k8s_cr_driver.cli.instances import instances
    from k8s_cr_driver.cli.package import package
    from k8s_cr_driver.cli.purge import purge
    from k8s_cr_driver.cli.receive import receive
    from k8s_cr_driver.cli.role import role
    from k8s_cr_driver.cli.tree import tree
    from k8s_cr_driver.cli.validate import validate
    from k8s_cr_driver.cli.vim import vim

ENTRY_POINTS = "k8s_cr_driver.commands"
"""Entry points of commands whose modules need more than this room may import, such as Tacker."""


class _Tool(failures.Command, click.Group):
    """The commands, as one."""

    def invoke(self, ctx: click.Context) -> Any:
        if os.environ.get("NO_COLOR"):  # no-color.org; rich heeds it by itself
            ctx.color = False
        return super().invoke(ctx)


@click.group(
    cls=_Tool,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""
    \b
    Exit codes:
      0    fine
      1    a finding: something is wrong with the package, there are differences, or the answer was no
      2    the command is wrong
      3    the cluster cannot be reached, or has refused
      130  interrupted

    \b
    Completion, in ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish:
      eval "$(_K8S_CR_COMPLETE=bash_source k8s-cr)"
      eval "$(_K8S_CR_COMPLETE=zsh_source k8s-cr)"
      _K8S_CR_COMPLETE=fish_source k8s-cr | source
    """,
)
@click.version_option(package_name="k8s-cr-driver")
def main() -> None:
    """Work with VNF packages, and with VNF instances, whose resources are Kubernetes objects of any kind."""


for command in (init, package, validate, check_package, health, diff, instances, tree, purge, receive, confirm, role, vim):
    main.add_command(command)

for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
    main.add_command(entry.load())
