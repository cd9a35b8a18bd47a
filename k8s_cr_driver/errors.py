# SPDX-License-Identifier: Apache-2.0
"""Errors that carry data.

The text of an error is complete: it names the object, the field and the remedy, because ProblemDetails shows it as it is to
every user of Tacker's API. So no error is ever built from a request's body, a token or a Secret. Classes differ only where
a caller acts differently on them.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable

from k8s_cr_driver.redaction import Lines, foreign, one_line, own_words


class Concern(enum.Enum):
    """Which part of the access to a cluster an error is about; `lcm` and `cli` add the remedy in their users' words."""

    ENDPOINT = "endpoint"
    CA = "ca"
    CREDENTIALS = "credentials"
    OIDC = "oidc"


class DriverError(Exception):
    """Any failure that this driver explains. `status` and `title` are those of ProblemDetails (SOL013 clause 6.3)."""

    status = 500
    title = "Kubernetes operation failed"

    def __init__(self, message: str = "") -> None:
        """One line, whatever names of others are in the message, unless it is `redaction.Lines`."""
        super().__init__(message if isinstance(message, Lines) else one_line(message))


class Refused(DriverError):
    """The input cannot become objects of this cluster; the same request will fail again until somebody changes it."""

    status = 422
    title = "Refused"


class InvalidPackage(Refused):
    """A file, a document, a parameter or a VDU of the package is wrong; nothing was sent to the cluster."""

    status = 400
    title = "Invalid VNF package"


class InvalidRequest(Refused):
    """additionalParams or vimConnectionInfo are wrong."""

    status = 400
    title = "Invalid request"

    def __init__(self, message: str, concern: Concern | None = None) -> None:
        super().__init__(message)
        self.concern = concern


class NotPermitted(InvalidRequest):
    """The operator does not let the conductor connect to a URL."""


class NotOurs(Refused):
    """An object of that name exists and belongs to somebody else."""

    status = 409
    title = "Object belongs to somebody else"


class Conflict(Refused):
    """Another field manager owns fields that the manifest sets (server-side apply, KEP-555)."""

    status = 409
    title = "Field conflict"

    def __init__(self, message: str, fields: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


class Forbidden(Refused):
    """RBAC or an admission plugin says no."""

    status = 403
    title = "Forbidden by the cluster"


class Said(enum.Enum):
    """What the message of a refusal says; the values are the API server's own words, as patterns."""

    IMMUTABLE = (
        r"(?i)immutable"  # apimachinery's validation.FieldImmutableErrorMsg, and most transition rules of CRDs
        r"|updates? to .{0,300}?(is|are) forbidden|forbidden: updates to"  # StorageClass, StatefulSet, old budgets
        r"|(may|must|can) ?not (be )?(chang|modif|updat)"  # PriorityClass, Pod, Service, RoleBinding, CertificateSigningRequest
        r"|once set|after creation"  # Service, CustomResourceDefinition, ResourceQuota
    )
    """A field cannot change: pkg/apis/*/validation."""
    CALLED_IMMUTABLE = r"(?i)immutable|(may|must|can) ?not (be )?(chang|modif|updat)|once set|after creation"
    """The same in a webhook's own words, which are free: a policy may forbid all updates for a while."""
    OF_ANOTHER = "uid mismatch"
    """The object of that uid is gone: the patch handler."""
    DENIED = "denied (the )?request"
    """An admission webhook or policy has denied the request."""
    QUOTA = "exceeded quota"
    """What a namespace may have is used up, perhaps by the object itself."""
    NO_DRY_RUN = (
        r"(?i)\b(not|n't|un\w+|no|invalid|cannot|disabled|without)\b.{0,80}?\bdry[- _]?run"  # a webhook that has side effects
        r"|\bdry[- _]?run\b.{0,80}?\b(not|n't|un\w+|invalid|disabled)\b"
        r"|\b(un\w+|invalid) query parameter"  # its name is a value, which the own words do not have
    )
    """What is asked does not know dry runs: a webhook with side effects, or an API server of others, whose words are free."""
    UNMERGEABLE = "typed patch object|duplicate entries|request is too large|message larger than max"
    """No retry helps: structured-merge-diff's typed errors, and etcd's request limit (kubernetes/kubernetes#112152)."""
    UNDECLARED = "field not declared in schema|convert CR to an invalid group/version"
    """An object was written in another version of its kind, which has a field more than this one, or is served no more."""
    RBAC = "attempting to grant RBAC permissions|RBAC: "
    """The account may not, or a role of it is not there."""
    UNAUTHORIZED = r'forbidden: User "" cannot \S{1,100} (resource|path) ""'
    """The authorizer does not allow the request: apiserver, responsewriters.Forbidden. The quotes hold names, left out here."""
    TOO_EARLY = "being terminated|not found|no PriorityClass with name .{1,300}? was|status unknown for quota|failed quota"
    """A namespace, a ServiceAccount, a class or the count of a quota is not as it soon will be."""

    UNSPECIFIED = "failed quota: .{0,300}?must specify"
    """A quota wants requests or limits, which the object does not have, nor gets from a LimitRange."""

    @classmethod
    def of(cls, message: str) -> frozenset[Said]:
        """All that a message says in its own words: a value or a name that it repeats may have any of the words in it."""
        return _said(message)


@functools.lru_cache(maxsize=256)
def _said(message: str) -> frozenset[Said]:
    """Requests are repeated, and refused in the same words."""
    words = own_words(message)
    return frozenset(one for one, pattern in _SAID.items() if pattern.search(words))


_SAID = {one: re.compile(one.value) for one in Said}


class ApiError(DriverError):
    """
    The API server's own refusal, from its Status object (API conventions, "Response Status Kind").

    `status` is the HTTP code, `reason` the machine word (AlreadyExists, Invalid, ...), `causes` triples (reason,
    field, message) of `details.causes`, `retry_after` seconds or None, `subject` the resource and the name of `details`, "" for
    none. The text is "what was tried: what the server said". `said` is what the whole message says, of which `message` may
    be a part.
    """

    title = "The cluster refused"

    def __init__(
        self,
        attempt: str,
        status: int,
        reason: str,
        message: str,
        causes: Iterable[tuple[str, str, str]] = (),
        retry_after: float | None = None,
        subject: tuple[str, str] = ("", ""),
        said: frozenset[Said] | None = None,
    ) -> None:
        reason, message = foreign(reason), foreign(message, of_validation=status == 422)
        super().__init__(f"{attempt}: {status} {reason}: {message}")
        self.attempt, self.status, self.reason, self.message = attempt, status, reason, message
        self.causes = tuple((foreign(why), foreign(where), foreign(what)) for why, where, what in causes)
        self.retry_after, self.subject = retry_after, subject
        self.said = Said.of(message) if said is None else said


class TransportError(DriverError):
    """No response, or half of one: whether a write has happened is not known."""

    status = 503
    title = "Cluster cannot be reached"


class NotConnected(TransportError):
    """No connection was established: nothing was sent."""


class JustRestarted(TransportError):
    """The authorizer of an API server that may have just restarted refuses."""

    status = 403
    title = "Forbidden by the cluster"


class Unreadable(TransportError):
    """A response that cannot be read. The next one to such a request may be the same."""

    title = "A response of the cluster cannot be read"


class Contended(DriverError):
    """Somebody else has written between a read and the write that builds on it; both have to be done again."""

    status = 409
    title = "Object is written by others"


def passes(error: BaseException) -> bool:
    """Whether the same request may succeed later: no response, 429, 5xx, a restart, or others' writes."""
    return isinstance(error, (TransportError, Contended)) or (
        isinstance(error, ApiError) and (error.status == 429 or error.status >= 500)
    )


def may_have_taken_effect(error: BaseException) -> bool:
    """Whether a write that failed so may have happened: no response, or a 5xx that is not the denial of a webhook or policy."""
    if isinstance(error, TransportError):
        return not isinstance(error, (NotConnected, JustRestarted))
    return isinstance(error, ApiError) and error.status >= 500 and Said.DENIED not in error.said


class ConnectionFailed(DriverError):
    """The cluster does not respond, its certificate is not the expected one, or it refuses the credentials."""

    status = 503
    title = "Cluster cannot be reached"

    def __init__(self, message: str, concern: Concern | None = None) -> None:
        super().__init__(message)
        self.concern = concern


class Superseded(DriverError):
    """Another worker took this instance over; this one has stopped writing."""

    status = 409
    title = "Another worker took over"


class Stopped(DriverError):
    """The operation was asked to stop."""

    title = "Stopped"
