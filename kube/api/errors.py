"""Errors of the Kubernetes API, as a client sees them.

::

    ApiError                 a Status of kind Failure: code, reason, message, details
    ├── BadRequest           400
    ├── Unauthorized         401
    ├── Forbidden            403
    ├── NotFound             404
    ├── Conflict             409, a stale resourceVersion or a failed precondition
    │   └── AlreadyExists    409, reason AlreadyExists
    ├── Gone                 410, the resourceVersion is too old to watch or continue from
    ├── Invalid              422
    ├── TooManyRequests      429
    └── ServerError          5xx
    Unavailable              the server could not be reached or hung up; the outcome of a write is unknown
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ApiError(Exception):
    """A Kubernetes ``Status`` of kind Failure (contract apiserver.md section 2).

    ``details`` None is left out of the Status, ``{}`` is not: the API server makes that difference.
    """

    code: int = 500
    reason: str = ""

    def __init__(
        self, message: str, *, code: int | None = None, reason: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = type(self).code if code is None else code
        self.reason = type(self).reason if reason is None else reason
        self.details = details or {}
        self.warnings: Sequence[str] = ()
        self._has_details = details is not None

    def status(self) -> dict[str, Any]:
        """The error as the wire's ``Status`` object."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self._has_details:
            body["details"] = self.details
        body["code"] = self.code
        return body


class BadRequest(ApiError):
    """400: the body or a parameter cannot be read."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """401: the request carries no valid credentials."""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """403: admission or authorisation refused."""

    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    """404: the object or the resource does not exist."""

    code, reason = 404, "NotFound"


class Conflict(ApiError):
    """409: stale resourceVersion, failed precondition, or a bind of a bound pod."""

    code, reason = 409, "Conflict"


class AlreadyExists(Conflict):
    """409: an object of that name exists."""

    reason = "AlreadyExists"


class Gone(ApiError):
    """410: the resourceVersion is too old. ``continue_token``: where a list may go on that is not of one moment."""

    code, reason = 410, "Expired"
    continue_token = ""

    def status(self) -> dict[str, Any]:
        """The error as the wire's ``Status`` object."""
        return {**super().status(), "metadata": {"continue": self.continue_token} if self.continue_token else {}}


class Invalid(ApiError):
    """422: the object is understood and wrong."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """429: the server refuses for now and may be asked again."""

    code, reason = 429, "TooManyRequests"


class ServerError(ApiError):
    """5xx: the server failed while it served the request."""

    code, reason = 500, "InternalError"


class Unavailable(Exception):
    """No answer: the connection failed or ended before one. A write may or may not have happened."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def from_status(status: dict[str, Any]) -> ApiError:
    """The exception for a wire ``Status``; unknown codes become ``ServerError`` (5xx) or ``ApiError``."""
    code = int(status.get("code", 500))
    reason = str(status.get("reason", ""))
    if reason == "AlreadyExists":
        cls: type[ApiError] = AlreadyExists
    else:
        cls = _BY_CODE.get(code, ServerError if code >= 500 else ApiError)
    return cls(str(status.get("message", "")), code=code, reason=reason, details=status.get("details"))
