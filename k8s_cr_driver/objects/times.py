# SPDX-License-Identifier: Apache-2.0
"""Times as the API server writes them: RFC 3339, with and without fractions of a second."""

from __future__ import annotations

import datetime
import re

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d{0,20})?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)


def moment(stamp: object) -> datetime.datetime:
    """An RFC 3339 time, in UTC and to the microsecond; ValueError for what is none.

    A time without an offset, such as one that was cut to the second, is in UTC.
    """
    found = _TIME.fullmatch(stamp) if isinstance(stamp, str) else None
    if found is None:
        raise ValueError(f"{stamp!r:.60} is no time of RFC 3339")
    offset = "+00:00" if found[4] in (None, "Z", "z") else found[4]
    try:  # Python 3.10 reads three or six digits of a fraction, and no Z
        whole = datetime.datetime.fromisoformat(f"{found[1]}T{found[2]}.{(found[3] or '0'):0<6}{offset}")
        return whole.astimezone(datetime.timezone.utc)
    except OverflowError:
        raise ValueError(f"{stamp!r:.60} is out of range") from None
