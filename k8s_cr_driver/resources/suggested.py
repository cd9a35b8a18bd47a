# SPDX-License-Identifier: Apache-2.0
"""The annotation that would have made an object ready for which an operation has waited to its end."""

from __future__ import annotations

from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.objects.keys import Object, annotations_of
from k8s_cr_driver.objects.rule_texts import READY_WHEN
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.resources.health.model import READINESS_UNKNOWN
from k8s_cr_driver.resources.health.suggestion import fitting_rule


def line(obj: CustomResource, live: Object) -> str:
    """The line, as YAML has it, for somebody who knows that `live` is ready; "" if no short one does it.

    There is none for an object in trouble, nor one that is not judged by the rule for all kinds, nor one whose own message
    has the line.
    """
    health = obj.health(live)
    is_settled = health.state is not State.WAITING or health.trouble or health.reason == READINESS_UNKNOWN
    if is_settled or health.source or type(obj) is not CustomResource or is_builtin(obj.key.group_kind):
        return ""
    written = fitting_rule(mapping(live, "status"))
    annotations = {**annotations_of(live), READY_WHEN: written.strip('"')}
    ruled = {**live, "metadata": {**mapping(live, "metadata"), "annotations": annotations}}
    return f"{READY_WHEN}: {written}" if written and obj.health(ruled).state is State.READY else ""
