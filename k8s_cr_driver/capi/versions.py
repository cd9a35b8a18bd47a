# SPDX-License-Identifier: Apache-2.0
"""Kubernetes versions of a workload cluster, and which changes of them Kubernetes supports (its "Version Skew Policy").

A text that is no version is left to the webhooks of Cluster API.
"""

from __future__ import annotations

import re

_PATCH = r"\.(\d{1,9})(?:-(alpha|beta|rc)\.(\d{1,9})(?:\.\d{1,9}){0,3})?"
_VERSION = re.compile(rf"v?(\d{{1,9}})\.(\d{{1,9}})(?:{_PATCH})?(?![.\d])")
_STAGES = ("alpha", "beta", "rc", None)
"""Of a patch version: those of its pre-releases, in their order, and that of the release."""


def parsed(version: str) -> tuple[int, ...]:
    """`v1.36.3` -> (1, 36, 3, 3, 0), `v1.36.3-rc.1` -> (1, 36, 3, 2, 1); a cloud may name no patch; () for what is no version.

    What follows, as `+rke2r1` or `-gke.100`, is the build of a distribution.
    """
    if not (found := _VERSION.match(version)):
        return ()
    major, minor, patch, stage, number = found.groups()
    return (int(major), int(minor), *((int(patch), _STAGES.index(stage), int(number or 0)) if patch else ()))


def _build(version: str) -> str:
    found = _VERSION.match(version)
    return version[found.end() :] if found else ""


def is_newer(version: str, other: str) -> bool:
    """Whether both are versions, and `version` is the newer one, as far as both are given."""
    one, two = parsed(version), parsed(other)
    shared = min(len(one), len(two))
    return one[:shared] > two[:shared]


def has_reached(version: str, wanted: str) -> bool:
    """Whether a version that is reported is the one that is wanted, as far as both are given.

    Of two builds of one version neither is newer.
    """
    builds = {_build(version), _build(wanted)} - {""}
    return len(builds) < 2 and not is_newer(version, wanted) and not is_newer(wanted, version)


def change_error(before: str, after: str) -> str:
    """Why a control plane cannot change its version from `before` to `after`, with the remedy; "" if it can."""
    return downgrade_error(before, after) or skip_error(before, after)


def downgrade_error(before: str, after: str) -> str:
    """Why a version cannot change from `before` to `after` because it is an older one, with the remedy; "" if it is not."""
    if is_newer(before, after):
        return f"cannot change from {before} to {after}: Kubernetes has no downgrade; take {before} or a newer one"
    return ""


def skip_error(reached: str, after: str) -> str:
    """Why what has `reached` a version cannot get another one, with the remedy; "" if it can, or if its cloud is ahead."""
    old, new = parsed(reached), parsed(after)
    if old and new and new[:2] > (old[0], old[1] + 1):
        step = f"v{old[0]}.{old[1] + 1}"
        return f"cannot change from {reached} to {after}: Kubernetes upgrades by one minor version; go to {step} first"
    return ""


def skew_error(kubelet: str, api_server: str) -> str:
    """Why kubelets cannot be as much older than API servers, with the remedy before; "" if they can."""
    old, new = parsed(kubelet), parsed(api_server)
    most = 3 if old[:2] >= (1, 25) else 2
    if not old or not new or old[0] != new[0] or new[1] - old[1] <= most:
        return ""
    least = f"v{new[0]}.{new[1] - most}"
    return f"{kubelet} must be {least} or newer: a kubelet is at most {most} minor versions older than {api_server}"
