"""Errors of the Kubernetes API, as a client sees them.

::

    ApiError                      a Status of kind Failure: code, reason, message, details
    ├── BadRequestError           400
    ├── UnauthorizedError         401
    ├── ForbiddenError            403
    ├── NotFoundError             404
    ├── ConflictError             409, a stale resourceVersion or a failed precondition
    │   └── AlreadyExistsError    409, reason AlreadyExists
    ├── GoneError                 410, the resourceVersion is too old to watch or continue from
    ├── InvalidError              422
    ├── TooManyRequestsError      429
    └── ServerError               5xx
    UnavailableError              the server could not be reached or hung up; the outcome of a write is unknown
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mews.old_names import renamed

__getattr__ = renamed(
    __name__,
    {
        "AlreadyExists": "AlreadyExistsError",
        "BadRequest": "BadRequestError",
        "Conflict": "ConflictError",
        "Forbidden": "ForbiddenError",
        "Gone": "GoneError",
        "Invalid": "InvalidError",
        "NotFound": "NotFoundError",
        "TooManyRequests": "TooManyRequestsError",
        "Unauthorized": "UnauthorizedError",
        "Unavailable": "UnavailableError",
    },
)


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
        """Return the error as the wire's ``Status`` object."""
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


class BadRequestError(ApiError):
    """400: the body or a parameter cannot be read."""

    code, reason = 400, "BadRequest"


class UnauthorizedError(ApiError):
    """401: the request carries no valid credentials."""

    code, reason = 401, "Unauthorized"


class ForbiddenError(ApiError):
    """403: admission or authorisation refused."""

    code, reason = 403, "Forbidden"


class NotFoundError(ApiError):
    """404: the object or the resource does not exist."""

    code, reason = 404, "NotFound"


class ConflictError(ApiError):
    """409: stale resourceVersion, failed precondition, or a bind of a bound pod."""

    code, reason = 409, "Conflict"


class AlreadyExistsError(ConflictError):
    """409: an object of that name exists."""

    reason = "AlreadyExists"


class GoneError(ApiError):
    """410: the resourceVersion is too old. ``continue_token``: where a list may go on that is not of one moment."""

    code, reason = 410, "Expired"
    continue_token = ""

    def status(self) -> dict[str, Any]:
        """Return the error as the wire's ``Status`` object."""
        return {**super().status(), "metadata": {"continue": self.continue_token} if self.continue_token else {}}


class InvalidError(ApiError):
    """422: the object is understood and wrong."""

    code, reason = 422, "Invalid"


class TooManyRequestsError(ApiError):
    """429: the server refuses for now and may be asked again."""

    code, reason = 429, "TooManyRequests"


class ServerError(ApiError):
    """5xx: the server failed while it served the request."""

    code, reason = 500, "InternalError"


class UnavailableError(Exception):
    """No answer: the connection failed or ended before one. A write may or may not have happened."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def from_status(status: dict[str, Any]) -> ApiError:
    """Return the exception for a wire ``Status``; unknown codes become ``ServerError`` (5xx) or ``ApiError``."""
    code = int(status.get("code", 500))
    reason = str(status.get("reason", ""))
    if reason == "AlreadyExists":
        cls: type[ApiError] = AlreadyExistsError
    else:
        cls = _BY_CODE.get(code, ServerError if code >= 500 else ApiError)
    return cls(str(status.get("message", "")), code=code, reason=reason, details=status.get("details"))
