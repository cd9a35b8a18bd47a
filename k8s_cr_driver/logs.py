# SPDX-License-Identifier: Apache-2.0
"""Loggers whose records are one line each, whatever names, errors and tracebacks they repeat.

What reads a log takes each line for a record: a newline in the name of an object could write a record of its own, that of an
audit log among them. So no module asks oslo.log itself for a logger, and tracebacks are part of the line.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

from oslo_log import log

from k8s_cr_driver.redaction import foreign, one_line


def logger(name: str) -> Any:
    """The adapter of oslo.log for the logger of this name."""
    found = log.getLogger(name)
    found.logger.addFilter(_to_one_line)
    return found


def _to_one_line(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    if record.exc_info:
        text += ": " + foreign("".join(traceback.format_exception(*record.exc_info)))
        record.exc_info = record.exc_text = None
    record.msg, record.args = one_line(text), ()
    return True
