# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr explain`: what a code of `validate` means."""

from __future__ import annotations

import click

from k8s_cr_driver.cli.explanations import CODES
from k8s_cr_driver.objects.fields import similar


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Say what CODE, which `validate` prints behind a finding, means; without it, list all codes.

    What it is about, why it is a finding, and what to do.
    """
    if code is None:
        for name, about in CODES.items():
            click.echo(f"{name:18} {about.title}")
        return
    if code not in CODES:
        near = similar(code, CODES)
        raise click.UsageError(f"{code}: is no code; " + (f"did you mean {near}?" if near else "k8s-cr explain lists them"))
    about = CODES[code]
    click.echo(f"{code}: {about.title}\n\nWhy:  {about.why}\nDo:   {about.remedy}")
