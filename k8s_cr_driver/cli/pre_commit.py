# SPDX-License-Identifier: Apache-2.0
"""The hook of pre-commit: `k8s-cr validate` of each package that has one of the files, which pre-commit names.

Its options are those of `validate`. A file that is in no package is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver.cli import failures
from k8s_cr_driver.cli.validate import validate
from k8s_cr_driver.package import tosca_meta


def packages(paths: Iterable[Path]) -> list[Path]:
    """The folders with a TOSCA.meta that have one of the paths, each once, and paths of other folders themselves."""
    return sorted({folder for path in paths for folder in [_package(path)] if folder})


def _package(path: Path) -> Path | None:
    """The outermost one, because `init` keeps a copy of TOSCA.meta in a package."""
    above = (folder for folder in reversed(path.parents) if (folder / tosca_meta.TOSCA_META).is_file())
    return next(above, path if path.is_dir() else None)


def _hook(paths: tuple[Path, ...], **options: Any) -> None:
    context, failed = click.get_current_context(), False
    for folder in packages(paths):
        try:
            context.invoke(validate, path=folder, **options)
        except click.exceptions.Exit as end:
            failed = failed or bool(end.exit_code)
    context.exit(failed)


hook = failures.Command(
    "k8s-cr-validate",
    callback=_hook,
    help="Check the packages that have one of the FILES.",
    params=[
        click.Argument(["paths"], nargs=-1, metavar="FILES...", type=click.Path(exists=True, path_type=Path)),
        *(option for option in validate.params if option.name != "path"),
    ],
)

if __name__ == "__main__":
    hook()
