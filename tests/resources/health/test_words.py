# SPDX-License-Identifier: Apache-2.0
"""Only words that are known to be good say that something is well."""

from __future__ import annotations

import pytest

from k8s_cr_driver.resources.health import State, assess
from k8s_cr_driver.resources.health.condition_words import word_set
from k8s_cr_driver.resources.health.judged_once import judged_once
from k8s_cr_driver.resources.health.words import Meaning, Word, meaning_of_type, meaning_of_word
from tests.resources.health.objects import ANY_FIELDS, Json, condition, crd, custom

BAD = word_set(
    """
    Aborted Abandoned Archived Blocked Broken Cancelled Closed Compromised Cordoned Corrupted Crashed Dead Deactivated
    Decommissioned Deferred Degraded Delayed Deleted Denied Deprecated Deprovisioned Desynchronized Destroyed Detached
    Disabled Disconnected Disrupted Diverged Drained Drifted Dropped Errored Evicted Exhausted Expired Failed Faulted
    Fenced Frozen Halted Hung Ignored Inactive Incomplete Inconsistent InstallReady Interrupted Invalidated Isolated
    Killed Leaked Locked Lost Malfunctioned Misconfigured Missing NotReady NotSynced Obsolete Offline Orphaned Outdated
    OutOfSync Overloaded Panicked PartiallyAvailable Poisoned Postponed Preempted Quarantined Queued ReadyForDeletion
    Rejected Released Removed Replaced Requested Retired Reverted Revoked RolledBack Shutdown Skipped Stale Stalled
    Stopped Stuck SucceededWithWarnings Superseded Tainted Terminated Throttled TimedOut Unavailable Unbound Undeployed
    Unhealthy Uninstalled Unknown Unloaded Unpublished Unreachable Unready Unregistered Unresolved Unschedulable
    Unsupported Unsynced UpdateAvailable Withdrawn
    """
)


@pytest.mark.parametrize("word", sorted(BAD))
@pytest.mark.parametrize("spelt", [str, str.lower, str.upper])
def test_bad_word_makes_nothing_ready(word: str, spelt: type[str]) -> None:
    for status in ({"conditions": [condition(spelt(word))]}, {"phase": spelt(word)}, {"state": spelt(word)}):
        assert not assess(custom(status), None).settled


@pytest.mark.parametrize("word", ["Frobnicated", "PodsFrobnicated", "Quux"])
def test_unknown_word_is_a_stage_and_no_success(word: str) -> None:
    assert assess(custom({"conditions": [condition(word)]}), None).state is State.WAITING
    assert assess(custom({"conditions": [condition("Ready"), condition(word)]}), None).state is State.READY
    assert assess(custom({"phase": word}), None).state is State.WAITING


@pytest.mark.parametrize(
    ("kind", "meaning"),
    [
        ("ResourcesUpToDate", Meaning.PART_IS_WELL),
        ("ResolvedRefs", Meaning.PART_IS_WELL),
        ("NoWarnings", Meaning.FACT),
        ("NoErrors", Meaning.PART_IS_WELL),
        ("NotRunning", Meaning.NEGATED),
        ("Unsynced", Meaning.NEGATED),
        ("Disconnected", Meaning.TROUBLE),
        ("BackendNotReady", Meaning.NEGATED),
        ("PendingProposal", Meaning.BUSY),
        ("UpgradeAvailable", Meaning.FACT),
        ("Configuring", Meaning.BUSY),
        ("Terminal", Meaning.FINAL_FAILURE),
        ("DeadLetterSinkResolved", Meaning.PART_IS_WELL),
        ("RollbackSucceeded", Meaning.TROUBLE),
        ("AbortCompleted", Meaning.TROUBLE),
        ("FallbackActive", Meaning.TROUBLE),
        ("ConflictExists", Meaning.TROUBLE),
        ("ProvisioningStarted", Meaning.STAGE),
        ("RecommendationProvided", Meaning.PART_IS_WELL),
    ],
)
def test_condition_type(kind: str, meaning: Meaning) -> None:
    assert meaning_of_type(kind) is meaning


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("UPDATE_COMPLETE", Word.GOOD),
        ("Cluster in healthy state", Word.GOOD),
        ("InstallReady", Word.UNFINISHED),
        ("WaitingForVolumeBinding", Word.UNFINISHED),
        ("CrashLoopBackOff", Word.TROUBLE),
        ("ImagePullBackOff", Word.TROUBLE),
        ("ROLLBACK_COMPLETE", Word.TROUBLE),
        ("SecretNotFound", Word.TROUBLE),
        ("NonCompliant", Word.TROUBLE),
        ("NoErrors", Word.UNKNOWN),
        ("InvalidSpec", Word.REFUSED),
        ("ConfigurationError", Word.REFUSED),
        ("FailedValidation", Word.REFUSED),
        ("Rejected", Word.REFUSED),
        ("InvalidCertificateRef", Word.TROUBLE),
        ("NotInvalid", Word.UNKNOWN),
        ("FailedOver", Word.UNKNOWN),
        ("FailedOverQuota", Word.TROUBLE),
        ("FailedOverlayNetwork", Word.TROUBLE),
        ("Usable", Word.GOOD),
    ],
)
def test_reason_or_phase(word: str, meaning: Word) -> None:
    assert meaning_of_word(word) is meaning


@pytest.mark.parametrize(
    ("status", "state", "trouble"),
    [
        ({"readyToUse": True}, State.READY, False),
        ({"readyToUse": False}, State.WAITING, False),
        ({"readyToUse": True, "error": {"message": "no such driver"}}, State.WAITING, True),
        ({"upToDate": False}, State.WAITING, False),
        ({"isHealthy": True}, State.READY, False),
        ({"isHealthy": False}, State.WAITING, False),
        ({"isFailed": True}, State.WAITING, True),
        ({"state": "available", "isDefault": False}, State.READY, False),
        ({"state": "created", "isReadyToUse": False}, State.WAITING, False),
        ({"phase": "Bound", "isAvailableForUse": False}, State.WAITING, False),
        ({"isReadyToUse": True}, State.READY, False),
        ({"state": "created", "message": "Created, not processed yet"}, State.WAITING, False),
        ({"state": "synced", "message": "waiting for the copy to complete"}, State.WAITING, False),
        ({"valid": "false"}, State.WAITING, False),
        ({"controlPlaneReady": True, "infrastructureReady": True}, State.READY, False),
        ({"controlPlaneReady": True, "infrastructureReady": False}, State.WAITING, False),
        ({"ready": True, "infrastructureReady": False}, State.READY, False),
        ({"degraded": True, "ready": True}, State.WAITING, True),
        ({"ready": True, "hasErrors": True}, State.WAITING, True),
        ({"ready": True, "reconciliationError": {"statusCode": "X"}}, State.WAITING, True),
        ({"ready": True, "errors": ["x"]}, State.WAITING, True),
        ({"ready": True, "error": "none"}, State.READY, False),
        ({"readyNodes": 2, "totalNodes": 3}, State.WAITING, False),
        ({"availableNodes": 3, "expectedNodes": 3}, State.READY, False),
        ({"availableNodes": 3, "unavailableNodes": 1, "expectedNodes": 3}, State.WAITING, False),
    ],
)
def test_flags_errors_and_counts_of_compound_names(status: Json, state: State, trouble: bool) -> None:
    health = assess(custom(status), None)
    assert (health.state, health.trouble) == (state, trouble)


@pytest.mark.parametrize(
    ("field", "state"),
    [
        ({"type": "boolean"}, State.WAITING),
        ({"type": "object", "properties": {"locked": {"type": "boolean"}}}, State.WAITING),
        ({"type": "string"}, State.READY),
    ],
)
def test_written_status_is_no_success_where_its_schema_has_a_boolean(field: Json, state: State) -> None:
    declared = {"type": "object", "properties": {"value": {"type": "string"}, "more": field}}
    assert assess(custom({"value": "42"}), crd(declared)).state is state


def test_written_status_is_no_success_where_its_schema_has_an_error() -> None:
    declared = {"type": "object", "properties": {"value": {"type": "string"}, "lastErrors": {}, "errorMessage": {}}}
    assert assess(custom({"value": "42"}), crd(declared)).state is State.WAITING


def test_running_is_the_end_where_the_crd_knows_no_other() -> None:
    for definition in (None, crd(ANY_FIELDS), {}):
        assert assess(custom({"phase": "Running"}), definition).state is State.READY


def test_a_word_is_judged_once_if_it_is_short_and_one_of_few() -> None:
    asked: list[str] = []
    judged = judged_once(lambda word: asked.append(word) or len(word))
    assert [judged("ready"), judged("ready"), judged("x" * 1000), judged("x" * 1000)] == [5, 5, 200, 200]
    assert asked == ["ready", "x" * 200, "x" * 200]
    assert all(judged(str(number)) == len(str(number)) for number in range(10_000))
    assert judged("ready") == 5 and asked[-1] == "ready"
