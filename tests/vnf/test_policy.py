# SPDX-License-Identifier: Apache-2.0
"""What operators forbid is refused with the object and the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from k8s_cr_driver.errors import Forbidden
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.vnf.policy import OPTIONS, Policy

WEB = ObjectKey("apps", "Deployment", "blue", "web")
TAB = ObjectKey("stable.example.com", "CronTab", "blue", "tab")
HOOK = ObjectKey("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "", "hook")
BLUE = ObjectKey("", "Namespace", "", "blue")


@pytest.mark.parametrize(
    ("rules", "forbidden", "allowed"),
    [
        ({"denied_kinds": ("*WebhookConfiguration.*",)}, HOOK, [WEB, TAB, BLUE]),
        ({"denied_kinds": ("Deployment.apps",)}, WEB, [HOOK, TAB]),
        ({"allowed_kinds": ("*.stable.example.com", "Namespace")}, WEB, [TAB, BLUE]),
        ({"allowed_kinds": ("Deployment",)}, WEB, []),
        ({"denied_namespaces": ("kube-*",)}, WEB._replace(namespace="kube-system"), [WEB, HOOK]),
        ({"denied_namespaces": ("blue",)}, BLUE, [HOOK]),
        ({"allowed_namespaces": ("tenant-*",)}, WEB, [HOOK, WEB._replace(namespace="tenant-a")]),
        ({"allowed_namespaces": ("tenant-*",)}, BLUE, [BLUE._replace(name="tenant-a")]),
        ({"allow_cluster_scoped": False}, HOOK, [WEB, TAB]),
    ],
)
def test_an_object_is_refused_with_the_rule(rules: dict[str, Any], forbidden: ObjectKey, allowed: list[ObjectKey]) -> None:
    policy = Policy(**rules)
    policy.check(allowed)
    with pytest.raises(Forbidden) as refused:
        policy.check([*allowed, forbidden])
    assert str(refused.value).startswith(f"{forbidden}: the operator does not allow it: [k8s_cr] {next(iter(rules))};")


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_of_a_request_is_refused_with_the_rule(option: str) -> None:
    Policy().check([WEB], [option])
    name = f"allow_{option.replace('-', '_')}"
    policy = replace(Policy(), **{name: False})
    policy.check([WEB])
    with pytest.raises(Forbidden, match=rf"additionalParams {option}: .*\[k8s_cr\] {name}"):
        policy.check([WEB], [option])
