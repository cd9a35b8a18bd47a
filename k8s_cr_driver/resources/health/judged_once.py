# SPDX-License-Identifier: Apache-2.0
"""What is judged of a word is kept, because controllers repeat themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

LONGEST = 200
"""Characters of a word that are looked at."""
_KEPT = 4096
"""Words of which a judgement is kept."""

_Judgement = TypeVar("_Judgement")


class _Judged(dict[str, _Judgement]):
    """What is judged of each word. `lru_cache` would keep words of any length, and a cluster may write those of a MiB."""

    def __init__(self, judge: Callable[[str], _Judgement]) -> None:
        super().__init__()
        self._judge = judge

    def __missing__(self, word: Any) -> _Judgement:
        if isinstance(word, str) and len(word) > LONGEST:
            return self._judge(word[:LONGEST])
        if len(self) >= _KEPT:
            self.clear()
        self[word] = judgement = self._judge(word)
        return judgement


def judged_once(judge: Callable[[str], _Judgement]) -> Callable[[str], _Judgement]:
    """`judge`, which keeps what it says of a word. Of a long word it sees the begin."""
    return _Judged(judge).__getitem__
