# SPDX-License-Identifier: Apache-2.0
"""`python -m k8s_cr_driver.package.tosca_parser FILE`: what Tacker's parser of TOSCA refuses, as a JSON list of texts.

A process of its own, because the parser does not end on a type that is derived from itself, on a file that imports itself, and
on some regular expressions.
"""

from __future__ import annotations

import json
import sys

from toscaparser.common.exception import ExceptionCollector, ValidationError
from toscaparser.tosca_template import ToscaTemplate


def refusals(file: str) -> list[str]:
    """Without the places in the parser's own code."""
    try:
        ToscaTemplate(file)
    except ValidationError:
        return list(dict.fromkeys(ExceptionCollector.getExceptionsReport(full=False)))
    except Exception as error:  # it takes much for granted
        return [f"the parser of TOSCA fails, {type(error).__name__}: {error}"]
    return []


if __name__ == "__main__":
    json.dump(refusals(sys.argv[1]), sys.stdout)
