# SPDX-License-Identifier: Apache-2.0
"""`results.csv`: which of the tests have passed with which driver, as it was when somebody last recorded it."""

import csv
from collections.abc import Iterable
from pathlib import Path

from .tests import Result

FILE = Path(__file__).with_name("results.csv")
TEST, PASSED, FAILED = "Test", "passed", "failed"


def passes_with(driver: str, file: Path = FILE) -> set[str]:
    """The tests that have passed."""
    return {row[TEST] for row in _rows(file) if row.get(driver) == PASSED}


def record(driver: str, results: Iterable[Result], file: Path = FILE) -> None:
    """Of tests that were not run the former result stays."""
    rows = {row[TEST]: row for row in _rows(file)}
    for result in results:
        rows.setdefault(result.test, {TEST: result.test})[driver] = FAILED if result.problem else PASSED
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    with file.open("w", newline="") as output:
        writer = csv.DictWriter(output, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[test] for test in sorted(rows))


def _rows(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with file.open(newline="") as content:
        return list(csv.DictReader(content))
