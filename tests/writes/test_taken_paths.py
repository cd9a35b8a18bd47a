# SPDX-License-Identifier: Apache-2.0
"""Manifests without the fields at some paths."""

from __future__ import annotations

import copy

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.writes.taken import without

PORTS = [{"port": 53, "targetPort": 1}, {"port": 53, "protocol": "UDP", "targetPort": 2}]


@pytest.mark.parametrize(("manifest", "paths", "left"), [
    ({"a": 1, "b": 2}, [".a"], {"b": 2}),
    ({"a": {"b": 1}}, [".a.b"], {}),
    ({"a": {"b": 1, "c": {}}}, [".a.b"], {"a": {"c": {}}}),
    ({"a": {"b.c/d": 1, "b": {"c/d": 2}}}, [".a.b.c/d"], {"a": {"b": {"c/d": 2}}}),
    ({"a": {"b": {"c": 2}}}, [".a.b.c"], {}),
    ({"a": {"x[=y]": 1, "z": 1}}, [".a.x[=y]"], {"a": {"z": 1}}),
    ({"l": PORTS}, ['.l[port=53,protocol="TCP"].targetPort'], {"l": [{"port": 53}, PORTS[1]]}),
    ({"l": PORTS}, ['.l[port=53,protocol="UDP"].targetPort'], {"l": [PORTS[0], {"port": 53, "protocol": "UDP"}]}),
    ({"l": PORTS}, ['.l[port=53,protocol="TCP"]', '.l[port=53,protocol="UDP"]'], {}),
    ({"l": [PORTS[0], PORTS[0]]}, ['.l[port=53,protocol="TCP"].targetPort'], {"l": [PORTS[0], PORTS[0]]}),
    ({"l": [{"name": 'a"]b'}, {"name": "c"}]}, ['.l[name="a\\"]b"]'], {"l": [{"name": "c"}]}),
    ({"l": [{"on": True, "v": 1}, {"on": 1, "v": 1}]}, [".l[on=true].v"], {"l": [{"on": True}, {"on": 1, "v": 1}]}),
    ({"l": [{"v": 1}]}, ['.l[name="a"].v'], {"l": [{"v": 1}]}),
    ({"l": [{"port": 80.0, "v": 1}]}, [".l[port=80].v"], {"l": [{"port": 80.0}]}),
    ({"l": [{"name": "a\u00a0\x7fb", "v": 1}]}, ['.l[name="a\\u00a0\\x7fb"].v'], {"l": [{"name": "a\u00a0\x7fb"}]}),
    ({"l": [{"name": "a", "v": 1}]}, ['.l[name="a\\q\\x"].v', ".l[name=a].v"], {"l": [{"name": "a", "v": 1}]}),
    ({"l": [{"v": 1}]}, [".l[" + ",".join(f"k{n}={n}" for n in range(200)) + "].v"], {"l": [{"v": 1}]}),
    ({"l": [1, 2]}, [".l[0]", '.l[="x"]', ".l[=1]"], {"l": [1, 2]}),
    ({"a": 1}, ["", ".", "a", ".b", ".a.b", ".a[0]", "[", "]", ".a["], {"a": 1}),
])  # fmt: skip
def test_a_manifest_without_the_fields_of_a_conflict(manifest: Object, paths: list[str], left: Object) -> None:
    before = copy.deepcopy(manifest)
    assert without(manifest, paths) == left
    assert manifest == before
