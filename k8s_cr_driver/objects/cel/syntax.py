# SPDX-License-Identifier: Apache-2.0
"""The syntax of the Common Expression Language (github.com/google/cel-spec, langdef.md): a text becomes a tree.

No library is used: the one for all Pythons that this driver runs on takes two milliseconds for an expression and has no limit
of cost, and a rule is asked on each event. A tree has a limited size and depth, so what walks it needs no check of its own.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

LONGEST = 2048
"""Characters of an expression."""
MOST_NODES = 400
DEEPEST = 60
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|//[^\n]*)
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>(?:0x[0-9a-fA-F]{1,16}|[0-9]{1,20})(?![0-9]))[uU]?
    |(?P<text>[rR]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>\.\?|\[\?|&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"} | {c: c for c in "\\\"'`?"}
_BINARY = (("||",), ("&&",), ("==", "!=", "<=", ">=", "<", ">", "in"), ("+", "-"), ("*", "/", "%"))
_WORDS = {"true": True, "false": False, "null": None}


class ExpressionError(ValueError):
    """What is wrong with an expression, with the column where it is."""


class LimitError(ExpressionError):
    """It is larger than what is read here, which says nothing of its meaning."""


class Node(NamedTuple):
    """`kind`: literal, name, select, index, call, list, map, not, negate, if, or an operator; `value` depends on it."""

    kind: str
    column: int
    parts: tuple[Node, ...] = ()
    value: Any = None
    size: int = 1
    depth: int = 1


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


def parse(text: str, before: int = 0) -> Node:
    """The tree of an expression that stands after `before` characters, which columns count; ExpressionError if it is none."""
    if len(text) > LONGEST:
        raise LimitError(f"it has {len(text)} characters, {LONGEST} are allowed")
    parser = _Parser(_tokens(text, before))
    tree = parser.expression(0)
    parser.end()
    return tree


def _tokens(text: str, before: int) -> list[_Token]:
    found, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            remedy = "; write == to compare" if text[place] == "=" else ""
            remedy = f": no {text[place]} ends the text that begins here" if text[place] in "'\"" else remedy
            raise ExpressionError(f"column {before + place + 1}: {text[place]!r} is not understood{remedy}")
        if match.lastgroup != "space":
            kind = str(match.lastgroup)
            found.append(_Token(kind, match[kind], before + place + 1))
        place = match.end()
    return [*found, _Token("end", "the end", before + len(text) + 1)]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._place, self._nodes = tokens, 0, 0

    def expression(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise LimitError(f"column {self._column}: more than {DEEPEST} expressions are within each other")
        condition = self._binary(0, depth)
        column = self._column
        if not self._take("?"):
            return condition
        first = self._binary(0, depth + 1)
        self._want(":")
        return self._node("if", column, (condition, first, self.expression(depth + 1)))

    def end(self) -> None:
        if self._next.kind != "end":
            raise self._error(f"{self._next.text} is not expected here")

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    @property
    def _column(self) -> int:
        return self._next.column

    def _error(self, problem: str, column: int = 0) -> ExpressionError:
        return ExpressionError(f"column {column or self._column}: {problem}")

    def _take(self, *texts: str) -> str:
        token = self._next
        if token.kind not in ("op", "name") or token.text not in texts:
            return ""
        self._place += 1
        return token.text

    def _want(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"{text} is expected, and {self._next.text} is there")

    def _name(self) -> str:
        token = self._next
        if token.kind != "name":
            raise self._error(f"a name is expected, and {token.text} is there")
        self._place += 1
        return token.text

    def _node(self, kind: str, column: int, parts: tuple[Node, ...] = (), value: Any = None) -> Node:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise LimitError(f"column {column}: it has more than {MOST_NODES} parts")
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > DEEPEST:
            raise LimitError(f"column {column}: more than {DEEPEST} expressions are within each other")
        return Node(kind, column, parts, value, 1 + sum(part.size for part in parts), depth)

    def _binary(self, level: int, depth: int) -> Node:
        if level == len(_BINARY):
            return self._unary(depth)
        left = self._binary(level + 1, depth)
        while True:
            column = self._column
            operator = self._take(*_BINARY[level])
            if not operator:
                return left
            left = self._node(operator, column, (left, self._binary(level + 1, depth)))

    def _unary(self, depth: int) -> Node:
        column = self._column
        signs = []
        while sign := self._take("!", "-"):
            signs.append(sign)
        found = self._member(depth)
        for sign in reversed(signs):
            if sign == "-" and found.kind == "literal" and isinstance(found.value, (int, float)):
                found = found._replace(value=-found.value)
            else:
                found = self._node("not" if sign == "!" else "negate", column, (found,))
        return found

    def _member(self, depth: int) -> Node:
        found = self._primary(depth)
        while True:
            column = self._column
            sign = self._take(".?", ".", "[?", "[")
            if sign in (".", ".?"):
                name = self._name()
                if sign == "." and self._take("("):
                    found = self._node("call", column + 1, (found, *self._listed(")", depth)), (name, True))
                else:
                    found = self._node("select", column, (found,), (name, sign == ".?"))
            elif sign:
                index = self.expression(depth + 1)
                self._want("]")
                found = self._node("index", column, (found, index), sign == "[?")
            else:
                return found

    def _primary(self, depth: int) -> Node:
        token = self._next
        self._place += 1
        if token.kind == "text":
            return self._node("literal", token.column, value=self._text(token))
        if token.kind == "double":
            return self._node("literal", token.column, value=float(token.text))
        if token.kind == "int":
            return self._node("literal", token.column, value=int(token.text, 16 if token.text[:2] == "0x" else 10))
        if token.kind == "name" and token.text in _WORDS:
            return self._node("literal", token.column, value=_WORDS[token.text])
        if token.kind == "name" and token.text != "in":
            if self._take("("):
                return self._node("call", token.column, tuple(self._listed(")", depth)), (token.text, False))
            return self._node("name", token.column, value=token.text)
        if token.text == "(" and token.kind == "op":
            inner = self.expression(depth + 1)
            self._want(")")
            return inner
        if token.text == "[" and token.kind == "op":
            return self._node("list", token.column, tuple(self._listed("]", depth)))
        if token.text == "{" and token.kind == "op":
            return self._node("map", token.column, tuple(self._pairs(depth)))
        self._place -= 1
        raise self._error(f"a value is expected, and {token.text} is there")

    def _listed(self, end: str, depth: int) -> list[Node]:
        found: list[Node] = []
        while not self._take(end):
            if found:
                self._want(",")
                if self._take(end):
                    break
            found.append(self.expression(depth + 1))
        return found

    def _pairs(self, depth: int) -> list[Node]:
        found: list[Node] = []
        while not self._take("}"):
            if found:
                self._want(",")
            found.append(self.expression(depth + 1))
            self._want(":")
            found.append(self.expression(depth + 1))
        return found

    def _text(self, token: _Token) -> str:
        if token.text[0] in "rR":
            return token.text[2:-1]

        def plain(match: re.Match[str]) -> str:
            if match[5] is not None:
                if match[5] not in _ESCAPES:
                    raise self._error(f"\\{match[5]} is no escape", token.column)
                return _ESCAPES[match[5]]
            code = int(match[4], 8) if match[4] else int(match[1] or match[2] or match[3], 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise self._error(f"{match[0]} is no character", token.column)
            return chr(code)

        return _ESCAPE.sub(plain, token.text[1:-1])
