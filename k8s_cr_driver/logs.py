# SPDX-License-Identifier: Apache-2.0
"""Loggers whose records are one line each, whatever names, errors and tracebacks they repeat.

What reads a log takes each line for a record: a newline in the name of an object could write a record of its own, that of an
audit log among them. So no module asks oslo.log itself for a logger, and tracebacks are part of the line.
"""

from __future__ import annotations

import functools
import logging
import traceback
from typing import Any

from k8s_cr_driver.redaction import foreign, one_line


class _Logger:
    """The adapter of oslo.log, which is imported at the first use: most commands of the tool log nothing, and users wait."""

    def __init__(self, name: str) -> None:
        self._name = name

    @functools.cached_property
    def _adapter(self) -> Any:
        from oslo_log import log

        return log.getLogger(self._name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)


def logger(name: str) -> Any:
    """The adapter of oslo.log for the logger of this name."""
    logging.getLogger(name).addFilter(_to_one_line)
    return _Logger(name)


def _to_one_line(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    if record.exc_info:
        text += ": " + foreign("".join(traceback.format_exception(*record.exc_info)))
        record.exc_info = record.exc_text = None
    record.msg, record.args = one_line(text), ()
    return True
