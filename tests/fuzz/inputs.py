# SPDX-License-Identifier: Apache-2.0
"""Hostile inputs: pieces of the languages that are read, repeated and nested, and values of wrong types."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

PIECES = (
    "a", "0", "-", ".", ":", ": ", "\n", " ", "\t", "\"", "'", "\\", "{", "}", "[", "]", "&a ", "*a", "<<: ", "? ", "- ",
    "!!x ", "${", "${A", ":=", "$${", "---\n", "...", "|\n ", "#", "%", "~", "null", "1e999", "0x", "9" * 50, "\x00", "\x1b",
    "\x85", "\u2028", "\ud800", "\N{SNOWMAN}", "Invalid value: ", "map[", "password: ", "--token ", "-----BEGIN A-----",
    "Bearer ", "eyJ", "://a:", "@", "metadata", "apiVersion: v1\n", "kind: ", "name", "topology_template:\n ", "node_types:\n ",
    "contexts", "clusters", "users", "current-context: a\n", "server: ", "applyset", ",",
)  # fmt: skip
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.just(10**400), st.floats(), st.text(max_size=20), st.sampled_from(PIECES)
)


def texts(limit: int = 20_000) -> st.SearchStrategy[str]:
    """Up to six pieces, repeated up to `limit` characters together."""
    part = st.tuples(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join), st.integers(1, limit // 8))
    return st.lists(part, max_size=6).map(lambda parts: "".join(text * times for text, times in parts)[:limit])


def values() -> st.SearchStrategy[Any]:
    """JSON, and what only Python or YAML can hold."""
    names = st.text(max_size=8) | st.sampled_from(PIECES)
    return st.recursive(
        ODD, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=20
    )
