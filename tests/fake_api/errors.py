# SPDX-License-Identifier: Apache-2.0
"""Errors as the API server words them.

One exception carries the HTTP code and the whole `Status` body; the functions below make the ones that clients tell
apart by code, reason, details or message.
"""

import json
from typing import Any

Object = dict[str, Any]


class ApiError(Exception):
    """An answer other than 2xx: `code` and the JSON `Status`; `headers` are added to the response."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None,
                 headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers or {}
        self.status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                               "message": message}
        if reason:
            self.status["reason"] = reason
        if details is not None:
            self.status["details"] = details
        self.status["code"] = code


def _details(group: str, plural: str, name: str) -> Object:
    details = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in details.items() if value}


def _qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def not_found(group: str, plural: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f"{_qualified(group, plural)} {quoted(name)} not found",
                    _details(group, plural, name))


def no_such_path() -> ApiError:
    """A resource that a built-in group does not have."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


class PageNotFound(Exception):
    """404 in plain text: what the server says of groups that it does not serve, also those of a missing CRD."""


def already_exists(group: str, plural: str, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f"{_qualified(group, plural)} {quoted(name)} already exists",
                    _details(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    message = f"Operation cannot be fulfilled on {_qualified(group, plural)} {quoted(name)}: {why}"
    return ApiError(409, "Conflict", message, _details(group, plural, name))


def modified(group: str, plural: str, name: str) -> ApiError:
    return conflict(group, plural, name, "the object has been modified; please apply your changes to the latest "
                                         "version and try again")


def apply_conflict(causes: list[Object], message: str) -> ApiError:
    return ApiError(409, "Conflict", message, {"causes": causes})


def forbidden(group: str, plural: str, name: str, why: str, causes: list[Object] | None = None) -> ApiError:
    subject = _qualified(group, plural) + (f" {quoted(name)}" if name else "")
    details = _details(group, plural, name)
    if causes:
        details["causes"] = causes
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def invalid(group: str, kind: str, name: str, causes: list[Object]) -> ApiError:
    """422; `causes` are {reason, message, field}, the message without the field."""
    bodies = [f"{cause['field']}: {cause['message']}" for cause in causes]
    text = bodies[0] if len(bodies) == 1 else "[" + ", ".join(bodies) + "]"
    return ApiError(422, "Invalid", f"{_qualified(group, kind)} {quoted(name)} is invalid: {text}",
                    {**_details(group, kind, name), "causes": causes})


def cause(reason: str, message: str, field: str) -> Object:
    return {"reason": reason, "message": message, "field": field}


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def internal(message: str) -> ApiError:
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def timed_out() -> ApiError:
    why = "request did not complete within requested timeout - context deadline exceeded"
    return ApiError(504, "Timeout", f"Timeout: {why}", {})


def expired(message: str = "The resourceVersion for the provided watch is too old.") -> ApiError:
    return ApiError(410, "Expired", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_media_type(accepted: list[str]) -> ApiError:
    return ApiError(415, "UnsupportedMediaType",
                    "the body of the request was in an unknown format - accepted media types include: "
                    + ", ".join(accepted))
