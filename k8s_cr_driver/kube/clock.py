# SPDX-License-Identifier: Apache-2.0
"""The time by a server's clock, which may differ from this host's: what the server writes is compared with it."""

from __future__ import annotations

import datetime
import email.utils

from k8s_cr_driver.objects.times import moment

_UTC = datetime.timezone.utc


class ServerClock:
    """For many threads. Before the first response it is this host's."""

    def __init__(self) -> None:
        self._ahead = datetime.timedelta()

    def note(self, date: str | None) -> None:
        """The Date of a response that has just come (RFC 9110, 6.6.1), to the second; what is none is ignored."""
        try:
            said = email.utils.parsedate_to_datetime(date or "")
        except (TypeError, ValueError):
            return
        if said.tzinfo is not None:
            self._ahead = said - datetime.datetime.now(_UTC)

    def age(self, stamp: str) -> float:
        """Seconds since an RFC 3339 time by the server's clock, negative for one that is still to come. ValueError."""
        return (datetime.datetime.now(_UTC) + self._ahead - moment(stamp)).total_seconds()
