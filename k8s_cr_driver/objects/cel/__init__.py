# SPDX-License-Identifier: Apache-2.0
"""Evaluates an expression of the Common Expression Language on an object: `self`, or its fields by their names.

Each call of a `Program` may cost a limited number of steps, whoever wrote the expression: macros pay for each element, and what
reads or makes a text or a list pays for its length. Regular expressions are RE2's, which never goes back.

`syntax` has the tree of an expression, `fields` what it reads, `compiler` makes a function of it from `operators`, `functions`
and `macros`, `values` has the types and the cost, and `program` is what rules ask.
"""

from __future__ import annotations

from k8s_cr_driver.objects.cel.program import Program
from k8s_cr_driver.objects.cel.syntax import ExpressionError
from k8s_cr_driver.objects.cel.values import CostError, EvaluationError

__all__ = ["CostError", "EvaluationError", "ExpressionError", "Program"]
