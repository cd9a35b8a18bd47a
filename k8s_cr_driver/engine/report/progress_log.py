# SPDX-License-Identifier: Apache-2.0
"""What a run still waits for: its error when the deadline passes, and some lines in the log until then.

Both name the deepest cause first, for which a worker reads what is below the objects. A wait sends no other requests; so
each line comes after twice as long a pause as the one before.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from k8s_cr_driver import logs
from k8s_cr_driver.engine.apply.desired_set import DesiredSet
from k8s_cr_driver.engine.delete import webhooks
from k8s_cr_driver.engine.delete.replacer import Replacer
from k8s_cr_driver.engine.delete.rest import Rest
from k8s_cr_driver.engine.report.clouds import Clouds
from k8s_cr_driver.engine.report.diagnosis import Findings, Seen, search
from k8s_cr_driver.engine.report.not_ready import NotReady, Report
from k8s_cr_driver.engine.run.loop import Overdue, Run
from k8s_cr_driver.engine.run.nodes import Desired, Phase, ToDelete
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.resources.health import State

LOG = logs.logger(__name__)

FIRST_LINE = 40.0
"""Seconds until the first log line about what the run waits for, which can say that nobody acts (`silence.PATIENCE`)."""

LOOKED_AT = 100
"""Objects that a log line is chosen from, the worst: a search costs each of them a list, and its report a millisecond."""

SEARCH_SECONDS = 30.0
"""Seconds for which what is below the objects is read: a server may be slow with each of many lists."""


def _with_webhook(client: Client, report: Report) -> Report:
    why = webhooks.remedy(client, report.message)
    return replace(report, message=f"{report.message}; {why}") if why else report


def _with_line(report: Report, line: str) -> Report:
    return replace(report, message=f"{report.message}; if it is ready as it is, annotate it with {line}")


def _rank(node: Desired | ToDelete) -> tuple[bool, bool, bool, ObjectKey]:
    """Sorts worst first by what the run knows, without a search: failed, in trouble, waiting, waiting for others."""
    has_failed = isinstance(node, Desired) and node.health.state is State.FAILED
    return not has_failed, not node.in_trouble, node.phase is Phase.BLOCKED, node.key


class Timeouts:
    """First for objects that are replaced, then for the set, then for `rest`, which is deleted."""

    def __init__(self, run: Run, desired: DesiredSet, informers: Informers, replacer: Replacer, rest: Rest) -> None:
        self._operation, self._loop, self._client, self._clouds = run.operation, run.loop, run.client, Clouds(run.client)
        self._set, self._informers, self._replacer, self._rest = desired, informers, replacer, rest

    def start_log(self) -> None:
        self._loop.start(self._log())

    def overdue(self, late: Overdue) -> NotReady:
        """What the run waits for now: objects, VNFCs, or kinds that are not listed."""
        seconds, is_last = f"{late.seconds:.0f}", self._replacer.is_whole
        unlisted = self._informers.unlisted() if is_last else []
        if late.headline:
            return self._not_ready(late.headline)
        if self._replacer.nodes:
            return self._not_ready(f"not deleted after {seconds} s")
        if self._set.awaits:
            error = self._not_ready(f"not ready after {seconds} s")
        elif self._set.nodes and not is_last:
            return NotReady(f"VNFCs are missing, or too many, after {seconds} s:", self._replacer.unfinished)
        elif self._rest.nodes:
            error = self._not_ready(f"not deleted after {seconds} s")
        elif unlisted:
            error = NotReady(f"After {seconds} s not all kinds of the instance are listed:", ())
        else:
            remedy = "Retry, or fail the operation and give a new one a longer wait-timeout."
            error = NotReady(f"After {seconds} s not all objects of the instance are found. {remedy}", ())
        return NotReady(error.headline, dict.fromkeys([*error.reports, *unlisted]))

    def stood_still(self, what: str, found: Sequence[Report]) -> NotReady:
        """With the reports that the search has `found`."""
        verb = "deleted" if any(isinstance(node, ToDelete) for node in self.open_nodes()) else "ready"
        return self._not_ready(f"not {verb}, {what}", found)

    def _not_ready(self, headline: str, found: Sequence[Report] | None = None) -> NotReady:
        """One report for each object that the run waits for, after those of their kinds that cannot be read."""
        nodes = self.open_nodes()
        total = max(len(self._set.nodes), len(nodes))
        unread = self._informers.unread({node.key.group_kind for node in nodes})
        found = self._reports(map(Seen.of, nodes)) if found is None else found
        return NotReady(f"{len(nodes)} of {total} objects {headline}:", [*unread, *self._with_lines(found)])

    def warn_of_optional(self) -> None:
        """Logs and notes each optional object that is not ready at the end, worst first; it sends no request."""
        nodes = [self._set.nodes[key] for key in self._set.unready]
        values = self._values() if nodes else SentValues([])
        found = [node.report(values) for node in sorted(nodes, key=lambda one: (one.health.badness, one.key))]
        self._operation.left[:] = found
        for report in found:
            LOG.warning("%s: the optional object is not ready: %s", self._operation.id, report)

    def _with_lines(self, found: Sequence[Report]) -> Sequence[Report]:
        """With the annotation that would have ended the wait for an object, unless it has a value that was sent."""
        nodes = [node for node in self.open_nodes() if isinstance(node, Desired)]
        lines = {node.key: (line, SentValues([node.live or {}])) for node in nodes if (line := node.ready_line())}
        values = self._values() if lines else SentValues([])
        fit = {key: line for key, (line, own) in lines.items() if own.removed_from(values.removed_from(line)) == line}
        return [_with_line(one, fit[one.key]) if one.key in fit else one for one in found]

    def _reports(self, seen: Iterable[Seen]) -> Sequence[Report]:
        return self.look(seen, all_events=False).reports

    def look(self, seen: Iterable[Seen], *, all_events: bool = True) -> Findings:
        """For at most SEARCH_SECONDS, also after the deadline, and until the operation is stopped."""
        until = time.monotonic() + SEARCH_SECONDS
        with self._client.connection.until(until, self._operation.stop.is_set) as connection:
            client = Client(connection, self._client.resources)
            found = search(client, self._clouds, self._values(), seen, all_events=all_events)
            return replace(found, reports=[_with_webhook(client, one) for one in found.reports])

    def open_nodes(self) -> list[Desired] | list[ToDelete]:
        """What the run waits for now."""
        if self._replacer.nodes:
            return list(self._replacer.nodes.values())
        unready = [self._set.nodes[key] for key in self._set.unready]
        return unready or list(self._rest.nodes.values())

    def _values(self) -> SentValues:
        """What the operation has sent, and what earlier ones have sent of the objects that it deletes."""
        return SentValues([*(node.obj.manifest for node in self._set.nodes.values()), *self._rest.found])

    async def _log(self) -> None:
        for doublings in itertools.count():
            await self._loop.pause(FIRST_LINE * 2**doublings)
            nodes = self.open_nodes()
            seen = list(map(Seen.of, heapq.nsmallest(LOOKED_AT, nodes, key=_rank)))
            with contextlib.suppress(DriverError):
                found = await self._loop.call(self._reports, seen) if seen else self._informers.unlisted()
                if found:
                    what = "%s: waiting for %d objects, the first cause: %s"
                    LOG.info(what, self._operation.id, len(nodes) or len(found), found[0])
