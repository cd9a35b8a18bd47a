# SPDX-License-Identifier: Apache-2.0
"""Keys of the cache follow everything that a recipe is made of."""

from builds.cache import digest


def test_a_digest_depends_on_where_one_part_ends():
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    assert digest(b"ab", b"c") == digest(b"ab", b"c")
