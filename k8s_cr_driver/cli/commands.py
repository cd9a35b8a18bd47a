# SPDX-License-Identifier: Apache-2.0
"""The commands of `k8s-cr`.

One module for each command, which is imported when the command is used: a completion and `--help` import none of them. An error
is one message without a traceback, and the exit code names one of five outcomes.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import warnings
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from k8s_cr_driver.cli import failures

ENTRY_POINTS = "k8s_cr_driver.commands"
"""Entry points of commands whose modules need more than this room may import, such as Tacker."""

COMMANDS: Mapping[str, str] = {
    "check-package": "Check which code of PACKAGE, a folder or a CSAR, may run on the conductor.",
    "confirm": "Let the VIM of a CLUSTER have another URL or CA.",
    "diff": "Show what PACKAGE would change on a cluster. Nothing is written.",
    "explain": "Say what CODE, which `validate` prints behind a finding, means; without it, list all codes.",
    "health": "Say whether objects are ready, and why.",
    "init": "Make FOLDER, which `package` makes a CSAR of, from a Helm chart or from Kubernetes manifests.",
    "instances": "List the VNF instances of a cluster.",
    "package": "Check FOLDER, as `validate` does, and write a CSAR file of it.",
    "plan": "Print what PACKAGE would do on a cluster, and the digest of that. Nothing is written.",
    "purge": "Remove INSTANCE from the cluster.",
    "receive": "Receive the kubeconfigs of workload clusters, which the credential sender sends, in a folder.",
    "recover": "Write the inventory of INSTANCE again, from the labels of its objects.",
    "role": "Print a ServiceAccount with just the permissions that the driver needs for PACKAGE, as manifests.",
    "run": "Instantiate PACKAGE on a cluster without Tacker, change what an earlier run made to it, or remove that.",
    "tree": "Show the objects of an instance or a package.",
    "validate": "Check PACKAGE, a folder or a CSAR, without a cluster.",
    "vim": "Print the vimConnectionInfo of a cluster, or with --package the package's request.json with it.",
}
"""Name -> the first paragraph of its `--help`. The module, and the function in it, have the name with `_` in place of `-`."""


class _Tool(failures.Command, click.Group):
    """The commands, as one."""

    def invoke(self, ctx: click.Context) -> Any:
        if os.environ.get("NO_COLOR"):  # no-color.org; rich heeds it by itself
            ctx.color = False
        return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted([*COMMANDS, *_of_entry_points()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        return _imported(cmd_name) if cmd_name in COMMANDS else _of_entry_points().get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        with formatter.section("Commands"):
            formatter.write_dl([(name, _short(name, limit)) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=_short(name)) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def _short(name: str, limit: int = 45) -> str:
    found = click.Command(name, help=COMMANDS[name]) if name in COMMANDS else _of_entry_points()[name]
    return found.get_short_help_str(limit)


def _imported(name: str) -> click.Command:
    attribute = name.replace("-", "_")
    with warnings.catch_warnings():
        # oslo.utils before 10.2 imports eventlet wherever it is installed, as beside Tacker, and eventlet warns every user
        warnings.filterwarnings("ignore", "\nEventlet is deprecated")
        command: click.Command = getattr(importlib.import_module(f"k8s_cr_driver.cli.{attribute}"), attribute)
    return command


@functools.cache
def _of_entry_points() -> dict[str, click.Command]:
    commands = [entry.load() for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)]
    return {command.name: command for command in commands}


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
