"""`results.csv`: which of the tests have passed with which driver, as it was when somebody last recorded it."""

import csv
from collections.abc import Iterable
from pathlib import Path

from .tests import Result

FILE = Path(__file__).with_name("results.csv")
TEST, PASSED, FAILED = "Test", "passed", "failed"


def passes_with(driver: str) -> set[str]:
    """The tests that have passed."""
    return {row[TEST] for row in _rows() if row.get(driver) == PASSED}


def record(driver: str, results: Iterable[Result]) -> None:
    rows = {row[TEST]: row for row in _rows()}
    for result in results:
        rows.setdefault(result.test, {TEST: result.test})[driver] = FAILED if result.problem else PASSED
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[test] for test in sorted(rows))


def _rows() -> list[dict[str, str]]:
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))
