# SPDX-License-Identifier: Apache-2.0
"""What a sentence for humans says, such as the message of a condition."""

from __future__ import annotations

import re

from k8s_cr_driver.resources.health.words import Word

_TROUBLE_TOLD = re.compile(
    r"(?i)\b(?:fail(?:s|ed|ing|ures?)?|\w*errors?|err|\w*exception|invalid|cannot|can't|couldn't|could not|unable|denied|"
    r"forbidden|rejected|refused|unauthorized|not found|not exist|not allowed|timed[ -]?out|exceeded|unknown|mismatch|"
    r"missing|unhealthy|degraded|misconfigured)\b"
)
_WAITS = re.compile(r"(?i)\s*(?:still )?(?:a?waiting|a?waits?|pending)\b")
_WAITS_STILL = re.compile(r"(?i)\s*(?:still )?a?waiting\b|.*\bnot (?:\w+ )?yet\b")
_WORK_TOLD = re.compile(
    r"(?i)\b(?:in progress|is being|are being|not yet|waiting|pending|creating|updating|initializing|provisioning|starting|"
    r"deploying|reconciling|installing|restoring|scaling)\b"
)


def meaning_of_message(message: str) -> Word:
    """What a sentence for humans says: trouble, unfinished work, or nothing that can be judged."""
    start = message[:400]
    if _WAITS.match(start):
        return Word.UNFINISHED
    if _TROUBLE_TOLD.search(start):
        return Word.TROUBLE
    return Word.UNFINISHED if _WORK_TOLD.search(start) else Word.UNKNOWN


def still_waits(message: str) -> bool:
    """Whether a sentence for humans says that something has not come yet, also beside a word that sounds well."""
    return bool(_WAITS_STILL.match(message[:400]))
