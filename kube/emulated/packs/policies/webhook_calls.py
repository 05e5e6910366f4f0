"""Webhooks over HTTPS: by URL, or by the Service that stands before them."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from msgspec import Struct

from mews.kube.api.resources import SERVICES
from mews.kube.emulated.core.store.admission import WebhookCall, WebhookError
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.networking.service_places import places_of, unreached

_LARGEST = 3 * 1024 * 1024
_OK = 200


class _Target(Struct, frozen=True):
    """Where to connect, and whose name the certificate must bear."""

    host: str
    port: int
    name: str


class HttpWebhooks:
    """A WebhookPort that makes one connection a call, so that a webhook may move or renew its certificate."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def review(self, call: WebhookCall) -> Any:
        """Return the AdmissionReview that the webhook answers.

        Raises ``WebhookError`` in the words of Go's client.
        """
        target = self._target(call)
        try:
            async with asyncio.timeout(call.timeout_s):
                return await _post(call, target)
        except TimeoutError:
            raise WebhookError(f'Post "{call.url}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError) as error:
            reason = unreached(error, f"{target.host}:{target.port}")
            raise WebhookError(f'Post "{call.url}": {reason}') from None

    def _target(self, call: WebhookCall) -> _Target:
        service = call.client.get("service")
        if service is None:
            parts = urlsplit(call.url)
            host = parts.hostname or ""
            return _Target(host, parts.port or 443, host)
        return self._of_service(call, service)

    def _of_service(self, call: WebhookCall, wanted: Mapping[str, Any]) -> _Target:
        """Return an address behind a Service: no kube-proxy stands between."""
        namespace, name, number = wanted["namespace"], wanted["name"], wanted.get("port", 443)
        store = self._store
        service = store.find(store.kinds.of(SERVICES), namespace, name)
        if service is None:
            raise WebhookError(f'Post "{call.url}": service "{name}" not found')
        shown = f"{name}.{namespace}.svc"
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return _Target(spec.get("externalName", ""), number, shown)
        port = next((each for each in spec.get("ports") or () if each.get("port") == number), None)
        if port is None:
            raise WebhookError(f'Post "{call.url}": no service port {number} found for service "{name}"')
        for host, place in places_of(store, namespace, name, str(port.get("name") or "")):
            return _Target(host, place, shown)
        raise WebhookError(f'Post "{call.url}": no endpoints available for service "{name}"')


def _trust(client: Mapping[str, Any]) -> ssl.SSLContext:
    bundle = client.get("caBundle")
    if not bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii", "replace"))


async def _post(call: WebhookCall, target: _Target) -> Any:
    parts = urlsplit(call.url)
    shown = f"[{target.host}]" if ":" in target.host else target.host
    url = f"https://{shown}:{target.port}{parts.path or '/'}?{parts.query}"
    headers = {"Accept": "application/json", "Content-Type": "application/json", "Host": parts.netloc}
    try:
        trust = _trust(call.client)
    except ssl.SSLError as error:
        raise WebhookError(f"unable to load root certificates: {error}") from None
    async with aiohttp.ClientSession() as session:
        body = json.dumps(call.review).encode()
        async with session.post(
            url, data=body, headers=headers, ssl=trust, server_hostname=target.name, allow_redirects=False
        ) as response:
            text = await _whole(response.content)
            if response.status != _OK:
                raise WebhookError(_unexpected(response.status, text.decode(errors="replace")))
    try:
        return json.loads(text)
    except ValueError:
        raise WebhookError("couldn't get version/kind; json parse error: the answer is not JSON") from None


async def _whole(content: aiohttp.StreamReader) -> bytes:
    """Return up to the largest answer that is read: one read gives no more than has arrived so far."""
    text = bytearray()
    while len(text) < _LARGEST and (part := await content.read(_LARGEST - len(text))):
        text += part
    return bytes(text)


_NOT_FOUND = 404


def _unexpected(status: int, text: str) -> str:
    if status == _NOT_FOUND:
        return "the server could not find the requested resource"
    shown = json.dumps(text.strip(), ensure_ascii=False)
    return f"an error on the server ({shown}) has prevented the request from succeeding"
