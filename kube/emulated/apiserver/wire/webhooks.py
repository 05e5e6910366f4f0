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

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from mews.kube.emulated.apiserver.store.admission import WebhookCall, WebhookError
from mews.kube.emulated.apiserver.store.selection import Selection
from mews.kube.emulated.apiserver.store.store import Store

_SERVICE_NAME = "kubernetes.io/service-name"
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
        """The AdmissionReview that the webhook answers.

        Raises ``WebhookError`` in the words of Go's client.
        """
        target = self._target(call)
        try:
            async with asyncio.timeout(call.timeout_s):
                return await _post(call, target)
        except TimeoutError:
            raise WebhookError(f'Post "{call.url}": context deadline exceeded') from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise WebhookError(f'Post "{call.url}": {_untrusted(error.certificate_error)}') from None
        except aiohttp.ClientSSLError as error:
            raise WebhookError(f'Post "{call.url}": tls: {error.os_error}') from None
        except aiohttp.ClientConnectorError as error:
            reason = (error.os_error.strerror or str(error.os_error)).lower()
            reason = "connection refused" if isinstance(error.os_error, ConnectionRefusedError) else reason
            shown = f"dial tcp {target.host}:{target.port}: connect: {reason}"
            raise WebhookError(f'Post "{call.url}": {shown}') from None
        except (aiohttp.ClientError, OSError) as error:
            raise WebhookError(f'Post "{call.url}": {str(error) or "EOF"}') from None

    def _target(self, call: WebhookCall) -> _Target:
        service = call.client.get("service")
        if service is None:
            parts = urlsplit(call.url)
            host = parts.hostname or ""
            return _Target(host, parts.port or 443, host)
        return self._of_service(call, service)

    def _of_service(self, call: WebhookCall, wanted: Mapping[str, Any]) -> _Target:
        """An address behind a Service: no kube-proxy stands between."""
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
        for host, ports in self._addresses(namespace, name):
            for each in ports:
                if (each.get("name") or "") == (port.get("name") or ""):
                    return _Target(host, int(each["port"]), shown)
        raise WebhookError(f'Post "{call.url}": no endpoints available for service "{name}"')

    def _addresses(self, namespace: str, name: str) -> list[tuple[str, list[Object]]]:
        """Ready addresses with their ports: of EndpointSlices, else of Endpoints."""
        store, found = self._store, []
        for part in store.shelf(store.kinds.of(ENDPOINT_SLICES)).select(Selection(namespace)):
            if labels_of(part).get(_SERVICE_NAME) != name:
                continue
            for endpoint in part.get("endpoints") or ():
                if (endpoint.get("conditions") or {}).get("ready") is not False and endpoint.get("addresses"):
                    found.append((str(endpoint["addresses"][0]), list(part.get("ports") or ())))
        whole = store.find(store.kinds.of(ENDPOINTS), namespace, name)
        for subset in (whole or {}).get("subsets") or ():
            found += [(str(each["ip"]), list(subset.get("ports") or ())) for each in subset.get("addresses") or ()]
        return found


def _trust(client: Mapping[str, Any]) -> ssl.SSLContext:
    bundle = client.get("caBundle")
    if not bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii", "replace"))


def _untrusted(error: Exception) -> str:
    text = "tls: failed to verify certificate: x509: "
    if isinstance(error, ssl.SSLCertVerificationError) and "match" in error.verify_message.lower():
        return f"{text}certificate is not valid for the name that was asked for"
    return f"{text}certificate signed by unknown authority"


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
    """Up to the largest answer that is read: one read gives no more than has arrived so far."""
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
