# SPDX-License-Identifier: Apache-2.0
"""Inventories as each form that was released has stored them: all of them must be read for ever."""

from __future__ import annotations

from k8s_cr_driver.objects.keys import Object

_SCOPE = {
    "applyset.kubernetes.io/tooling": "k8s-cr-driver/v1",
    "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Job.batch",
    "applyset.kubernetes.io/additional-namespaces": "blue,green",
    "k8s-cr-driver/token": "c208cf2b8a02411abdc99d17507b43c9",
    "k8s-cr-driver/operation": "d9fd489b-37cd-456f-a826-4c6ab644b331",
}
_MEMBERS = '{"ConfigMap":{"blue":["a"]},"Job.batch":{"green":["b"]}}'
_FINISHED = '[["batch","Job","green","b","0123456789abcdef"]]'
_PACKED = {
    "members.gz": "H4sIAAAAAAACA6tWcs7PS8tM900sULKqVkrKKU1VsopWSlSKrdVR8spP0ktKLEnOAEmlF6Wm5oHkkoBytQAeOOQlOAAAAA==",
    "finished.gz": "H4sIAAAAAAACA4uOVkpKLEnOUNJR8spPApLpRampeUAaxDYwNDI2MTUzt7BMTEpOSU1Tio0FAGTsvwgwAAAA",
}


def _config_map(annotations: dict[str, str], **data: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": {**_SCOPE, **annotations}}, **data}


ADOPTED_AS_ANNOTATION = _config_map({"k8s-cr-driver/adopted": '[["", "ConfigMap", "blue", "a"]]'})
"""The first form: no members."""
WITH_MEMBERS = _config_map(
    {"k8s-cr-driver/released": "true"},
    data={"adopted": '{"ConfigMap":{"blue":["a"]}}', "members": _MEMBERS, "finished": _FINISHED},
)
VERSION_1 = _config_map(
    {"k8s-cr-driver/released": "true", "k8s-cr-driver/version": "1"},
    data={"adopted": '{"ConfigMap":{"blue":["a"]}}'},
    binaryData=_PACKED,
)
"""Keys that are many are compressed, finished ones, too."""
