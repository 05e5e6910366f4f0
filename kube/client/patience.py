"""A request again when the server says so: what client-go does below every program of Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mews.kube.api.errors import ServerError, TooManyRequestsError

T = TypeVar("T")

MOST_TIMES = 10
"""So often a request is made again (client-go's ``rest/request.go``, ``maxRetries``)."""


async def patiently(request: Callable[[], Awaitable[T]]) -> T:
    """Return the answer to a request, which is made again after the time that a refusal with 429 or 5xx names; a
    refusal that names none is the answer (client-go's ``rest/with_retry.go``).

    Raises what the request does.
    """
    for _ in range(MOST_TIMES):
        try:
            return await request()
        except (TooManyRequestsError, ServerError) as refused:
            after_s = refused.details.get("retryAfterSeconds")
            if not after_s:
                raise
            await asyncio.sleep(float(after_s))
    return await request()
