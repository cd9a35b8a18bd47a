# SPDX-License-Identifier: Apache-2.0
"""Fields that differ between two objects, found without a look into what is equal."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.fake_api.fields import ITEM, Changes, changes, flatten
from tests.fake_api.shapes import of_kind

LEAVES = st.sampled_from(["a", "b", None]) | st.lists(st.sampled_from("ab"), max_size=2)
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("xyz")}, optional={"image": LEAVES, "args": LEAVES}),
    unique_by=lambda one: one["name"],
    max_size=3,
)
NAMES = st.sampled_from(["spec", "selector", "data", "extra"])
VALUES = st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)
OBJECTS = st.fixed_dictionaries(
    {}, optional={"spec": VALUES | st.fixed_dictionaries({"containers": CONTAINERS}), "data": VALUES, "metadata": VALUES}
)
FREE = {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}}
CUSTOM = {"type": "object", "properties": {"spec": FREE, "data": {**FREE, "x-kubernetes-map-type": "atomic"}}}
SHAPES = st.sampled_from([of_kind("Pod", None), of_kind("Widget", CUSTOM)])


@given(OBJECTS, OBJECTS, SHAPES)
def test_changes_are_those_of_all_fields(old: Any, new: Any, shape: Any) -> None:
    before, after = flatten(old, shape), flatten(new, shape)
    values = {path: (before.leaves[path], after.leaves[path]) for path in before.leaves.keys() & after.leaves.keys()}
    modified = {path for path, (one, other) in values.items() if ITEM not in (one, other) and one != other}
    assert changes(old, new, shape) == Changes(after.paths() - before.paths(), modified, before.paths() - after.paths())
