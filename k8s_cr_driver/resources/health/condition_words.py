# SPDX-License-Identifier: Apache-2.0
"""The words that controllers use for condition types, reasons, phases and states, by what they mean.

The same English is used by controllers that know nothing of each other ("Ready", "AllReplicasReady", "Provisioning",
"ConfigError"). Only words that are listed here say that something is well: an unknown one never does. No API group or
kind is known here; `words` reads compounds.
"""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(words.split())


GOOD = word_set(
    """ready available healthy succeeded success successful successfully succeeding complete completed completely done
    finished bound deployed created exists accepted synced synchronized sync insync applied installed provisioned
    reconciled online up green enabled active activated running valid validated verified established connected
    attached issued published initialized compliant normal stable ok programmed operational serving listening reachable
    discoverable resolved uptodate known matched updated upgraded joined loaded realized configured formed satisfied
    fulfilled enforced admitted imported replicated advertised enrolled unsealed unlocked discovered delivered open
    opened alive live passed pass merged mounted allocated executed usable provided"""
)
COMPLETION = word_set("succeeded success successful successfully complete completed completely done finished passed")
# The last part of a phase that names an end without success; with a completion time it is final
BAD_ENDS = word_set(
    """error errors errored failed failure aborted cancelled canceled expired timeout timedout killed interrupted exception
    panicked evicted preempted"""
)
CLEAR = word_set("ready healthy running")
TROUBLE = word_set(
    """error errors errored err failed failure failures failing fail fails fatal degraded unhealthy abnormal crash crashed
    crashing crashloop red warn warning warnings lost abort aborted cancelled canceled expired conflict conflicted conflicting
    conflicts unavailable missing timeout timedout exceeded exceeds noncompliant unreachable blocked blocking broken
    denied refused dead unresponsive inactive disconnected corrupted corrupt faulted faulty fault offline down fallback
    exhausted violation violations violated evicted dangling pressure orphaned unschedulable backoff stuck exception
    throwable panic panicked killed oomkilled unauthorized unauthenticated interrupted preempted overloaded mismatch
    mismatched problem problems unable cannot rollback rolledback reverted insufficient unresolved undefined diverged
    irreconcilable recoverable hung impossible terminal unrecoverable unretryable permanent
    permanently stalled critical wrong quarantined tainted malfunctioned compromised"""
)
HALF = word_set("partially partial out")
# Nobody goes on after these
FINAL = word_set("stalled terminal fatal unrecoverable unretryable permanent permanently")
REFUSAL = word_set(
    """invalid rejected rejection misconfigured misconfiguration malformed unsupported illegal disallowed unacceptable
    forbidden incompatible unparsable unprocessable badrequest"""
)
# "ConfigError", "SpecInvalid": what failed is what somebody wrote
WRITTEN = word_set("config configuration spec specification parameter parameters params validation syntax schema")
FAULTS = word_set("error errors err failed failure bad wrong")
# What an object points at may come later, also if the reason is "InvalidCertificateRef"
POINTERS = word_set(
    """ref refs reference references referenced secret secrets certificate certificates credential credentials backend
    backends parent dependency dependencies connection token login password license state checksum"""
)
HELD = word_set("paused pause suspended suspend hibernated hibernating hibernation")
# In a spec these are a wish; in a status they may be no more than the state before the first start
AT_REST = word_set("paused suspended hibernated hibernation stopped halted")
UNFINISHED = word_set(
    """pending progress inprogress queued requested scheduled submitted new init initial initiated partial partially
    yellow retry retries retrying rerun stopped halted uninitialized unset unready incomplete unbound terminated deleted
    unknown wait waits awaiting requires required started launched enqueued planned preparation delayed disabled build
    building closed detached shutoff shutdown removed uninstalled undeployed deprovisioned unmanaged skipped
    inconclusive undetermined outofsync"""
)
# A verb in its plain form is a stage ("InstallReady", "WaitForPods"), unless its completion follows ("UpdateSucceeded")
STEMS = word_set(
    """install uninstall upgrade update create delete deploy provision migrate scale plan rollout reconcile initialize
    start stop restart restore import build apply request deletion removal termination"""
)
# It was there once, or is not there yet: True contradicts "ready"
ENDED = word_set(
    """stopped halted terminated deleted closed shutdown removed uninstalled undeployed deprovisioned decommissioned
    deactivated destroyed superseded retired revoked archived abandoned withdrawn queued incomplete unknown outofsync
    outdated obsolete stale inconsistent nonfunctional malfunctioned compromised"""
)
# False is the usual state of a switch that turns something off
OFF = word_set("disabled detached skipped")
# Somebody decides on it
PROPOSALS = word_set("proposal")
# What waits for these is at rest until somebody comes
STARTED_BY_USERS = word_set("consumer manual")
SCHEDULES = word_set("schedule scheduled schedules interval window")
# Of a sentence with one of these, the good word at its end has not come true, or not of everything
SENTENCE_OPENERS = word_set(
    """to be will would shall should must may might can could until till when whenever if once unless before while after except
    only some few fewer part half almost nearly partly needs expects expected hoped none nothing nobody hardly"""
)
NEGATIONS = word_set("not non no never without yet")
NEGATIVE_PREFIXES = ("un", "in", "dis", "non", "mis")
# Said of a thing that has to be there or to be allowed: trouble if it is not
MUST_BE = word_set(
    """found allowed permitted supported match matching matches enough properly authorized compliant valid
    healthy reachable responding responsive"""
)
BUSY = word_set(
    """reconciling progressing provisioning creating updating upgrading deleting terminating rolling scaling remediating
    pending installing initializing starting stopping restarting restoring migrating resizing rebalancing deploying
    processing waiting issuing unpacking draining disrupting configuring joining recovering rollout progress inprogress
    applying syncing synchronizing"""
)
# "RollingOut", "ScalingUp" and "ScalingDown" carry their verb in front
DIRECTIONS = word_set("out up down in")
# Said of the object as a whole, where "InfrastructureReady" is said of a part
SUMMARIES = word_set("ready available healthy succeeded complete completed established")
# Said of the object as a whole, but of one side of it
ASPECTS = word_set("programmed synced accepted reconciled applied compliant valid issued admitted updated")
# Passed on the way; True is no sign that the end is reached
STAGES = word_set(
    """launched registered scheduled initialized created adopted started bootstrapped approved requested validated
    offered"""
)
# Facts about an object that is well either way
FACTS = word_set("limited managed allowed deprecated required restricted requested ignored warning warnings running")
