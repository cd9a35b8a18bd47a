# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr diff`: what an operation would create, change and delete, without doing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli.cluster import Kubeconfig
from k8s_cr_driver.cli.output import echo, output_option, print_json
from k8s_cr_driver.cli.planning import of_operation, plan_for
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.plan.actions import Action, Do
from k8s_cr_driver.plan.field_diff import Change
from k8s_cr_driver.writes.write_errors import NOT_RESTORED

_SHOWN = {
    Do.CREATE: ("created", "+", "green"),
    Do.APPLY: ("changed", "~", "yellow"),
    Do.REPLACE: ("replaced", "±", "yellow"),
    Do.DELETE: ("deleted", "-", "red"),
    Do.RELEASE: ("released", "-", "cyan"),
    Do.LEAVE: ("unchanged", "", ""),
    Do.CONFLICT: ("conflict", "!", "red"),
    Do.REFUSE: ("refused", "!", "red"),
}

_AS_BEFORE = "the same"
"""Stands for a message that is that of the line before."""


@click.command(
    epilog="""
    \b
    Examples:
      k8s-cr diff crontab.csar
      k8s-cr diff new.csar --instance 8f0e2ef0-5d8a-4a43-a1f0-000000000001 --param WORKERS=3
      k8s-cr diff . --instance $ID > /dev/null && echo "no differences"
    """
)
@of_operation
@output_option()
def diff(kubeconfig: Kubeconfig, path: Path, output: str, **options: Any) -> None:
    """Show what PACKAGE would change on a cluster. Nothing is written.

    It lists the objects to create, change, replace, delete and release, and conflicts. Give the same parameters,
    namespace and files as in the request: only Tacker knows those of earlier requests. Without --instance, counts are
    those of the manifests. Exits with 1 if there is any difference.
    """
    found, instance = plan_for(kubeconfig, path, **options)
    adopted = instance.content.adopted if instance else frozenset[ObjectKey]()
    unwanted = (Do.DELETE, Do.RELEASE)
    actions = [one._replace(why=NOT_RESTORED) if one.do in unwanted and one.key in adopted else one for one in found.actions]
    differences = [one for one in actions if one.do is not Do.LEAVE]
    if output == "json":
        print_json([_as_json(one) for one in actions])
    else:
        before = ""
        for one in differences:
            _print(one, _AS_BEFORE if one.why == before else one.why)
            before = one.why
    counts = Counter(_SHOWN[one.do][0] for one in actions)
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing", err=True)
    if differences:
        raise click.exceptions.Exit(1)


def _changes(action: Action) -> Sequence[Change]:
    """The fields that it changes of what is there."""
    return () if action.do is Do.CREATE else action.changes


def _as_json(action: Action) -> dict[str, Any]:
    fields = [{"field": one.path, "before": one.before, "after": one.after} for one in _changes(action)]
    return {"object": str(action.key), "verdict": _SHOWN[action.do][0], "changes": fields, "message": action.why}


def _print(action: Action, message: str) -> None:
    verdict, sign, colour = _SHOWN[action.do]
    explained = f": {message}" if action.why else ""
    echo(f"{sign} {verdict} {action.key}{explained}", colour=colour)
    for change in _changes(action):
        echo(f"    {change}")
