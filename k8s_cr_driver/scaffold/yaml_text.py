# SPDX-License-Identifier: Apache-2.0
"""Plain JSON values -> YAML that people read and compare, and that `package.documents` reads as the same values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

_OTHER_THAN_TEXT = re.compile(r"(?i)[-+]?\.?[0-9].*|[-+]?\.(inf|nan)|y|n|yes|no|on|off|true|false|null|~|<<|=|", re.DOTALL)
"""What some reader of YAML takes for something else than text; PyYAML knows only some of them."""
_WIDTH = 1_000_000
"""Columns. A folded line would change where a word of it does."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _of_text(dumper: Any, text: str) -> yaml.Node:
    style = "|" if "\n" in text else "'" if _OTHER_THAN_TEXT.fullmatch(text) else None
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_Dumper.add_representer(str, _of_text)


def dump(value: Any) -> str:
    """One document."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def dump_all(values: Iterable[Any]) -> str:
    """Several documents, with `---` between them."""
    return "---\n".join(map(dump, values))
