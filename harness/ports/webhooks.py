"""Admission webhooks in process: a webhook is whoever serves the name of its Service, or of its URL's host."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

from mews.harness.ports.services import LocalServices
from mews.kube.emulated.core.store.admission import WebhookCall, WebhookError

_OK = 200


class InProcessWebhooks:
    """A WebhookPort over the services of a cluster in virtual time."""

    def __init__(self, services: LocalServices) -> None:
        self._services = services

    async def review(self, call: WebhookCall) -> Any:
        """Return the AdmissionReview that the service answers.

        Raises ``WebhookError`` where nobody serves the name, in time and with JSON.
        """
        parts = urlsplit(call.url)
        service = (call.client.get("service") or {}).get("name") or parts.hostname or ""
        body = json.dumps(call.review).encode()
        try:
            async with asyncio.timeout(call.timeout_s):
                reply = await self._services.call(service, "POST", parts.path or "/", body)
        except TimeoutError:
            raise WebhookError(f'Post "{call.url}": context deadline exceeded') from None
        except ConnectionError as error:
            raise WebhookError(f'Post "{call.url}": {error}') from None
        if reply.status != _OK:
            text = json.dumps(reply.body.decode(errors="replace"))
            raise WebhookError(f"an error on the server ({text}) has prevented the request from succeeding")
        try:
            return json.loads(reply.body)
        except ValueError:
            raise WebhookError("couldn't get version/kind; json parse error: the answer is not JSON") from None
