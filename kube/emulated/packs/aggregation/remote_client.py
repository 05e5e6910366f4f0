"""Requests to the servers behind APIServices: as whom the API server comes, and whom it asks for."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Iterable
from random import Random
from typing import Any
from urllib.parse import quote

import aiohttp
from multidict import CIMultiDict

from mews.certificates import Certificates
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import MASTERS, User
from mews.kube.emulated.packs.aggregation.remote_apis import RemoteApi, ServerPlace, UnresolvedError, place_of
from mews.kube.emulated.packs.kubelets.proxies import AUTOMATIC
from mews.kube.emulated.packs.networking.service_places import unreached

AGGREGATOR = User("system:kube-aggregator", (MASTERS,))
_REMOTE = "X-Remote-"
_EXTRA = f"{_REMOTE}Extra-"
_PLAIN = "!#$&'*+-.^_`|~"
"""What may stand in a header's name beside letters and digits (client-go transport.headerKeyEscape)."""
_CONNECT_S = 30.0
_MOST_CONTEXTS = 100
_AT_ONCE = 64 * 1024
MOST_BYTES = 32 << 20
"""Of a document; Kubernetes' own OpenAPI, the longest that is known, has 4 MiB."""


class UnreachedError(Exception):
    """Nobody answered; in the words of Go's client."""


def identity_headers(user: User, given: Iterable[tuple[str, str]] = ()) -> CIMultiDict[str]:
    """Return the ``given`` headers for that user and no other (client-go transport.SetAuthProxyHeaders)."""
    own = {"x-remote-user", "x-remote-uid", "x-remote-group", "authorization"}
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in given:
        low = name.lower()
        if low not in own and not low.startswith((_EXTRA.lower(), "impersonate-")):
            headers.add(name, value)
    headers[f"{_REMOTE}User"] = user.name
    if user.uid:
        headers[f"{_REMOTE}Uid"] = user.uid
    for group in user.groups:
        headers.add(f"{_REMOTE}Group", group)
    for key, values in user.extra.items():
        for value in values:
            headers.add(_EXTRA + quote(key, safe=_PLAIN), value)
    return headers


class RemoteClient:
    """Asks servers, and shows them ``front`` so that they believe who asks; None: as nobody, as kube-apiserver without
    --proxy-client-cert-file."""

    def __init__(self, store: Store, front: Certificates | None, rng: Random) -> None:
        self._store = store
        self._front = front
        self._rng = rng
        self._contexts: dict[tuple[str, bool], ssl.SSLContext] = {}
        self._session: aiohttp.ClientSession | None = None

    def place(self, api: RemoteApi) -> ServerPlace:
        """Return where the server is.

        Raises UnresolvedError.
        """
        return place_of(self._store, api)

    def context(self, api: RemoteApi, *, trusting: bool = False) -> ssl.SSLContext:
        """Return how the server is known: by its ``caBundle``, else by what this machine trusts; ``trusting``: not at
        all.

        Raises ssl.SSLError for a bundle that is none.
        """
        insecure = trusting or api.insecure
        key = ("" if insecure else api.bundle, insecure)
        if key not in self._contexts:
            bundle = base64.b64decode(api.bundle).decode("ascii", "replace") if api.bundle and not insecure else None
            context = ssl.create_default_context(cadata=bundle)
            if insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if self._front is not None:
                context.load_cert_chain(self._front.certificate, self._front.key)
            if len(self._contexts) >= _MOST_CONTEXTS:
                self._contexts.clear()
            self._contexts[key] = context
        return self._contexts[key]

    def endpoint(self, place: ServerPlace) -> tuple[str, int]:
        """Return one of the pods behind the server's Service.

        Raises UnreachedError where there is none: kube-proxy refuses such connections.
        """
        if not place.places:
            raise UnreachedError(f"dial tcp {place.shown}: connect: connection refused")
        return self._rng.choice(place.places)

    async def ask(
        self,
        api: RemoteApi,
        method: str,
        path: str,
        headers: CIMultiDict[str],
        *,
        body: bytes | None = None,
        trusting: bool = False,
        endpoint: tuple[str, int] | None = None,
    ) -> aiohttp.ClientResponse:
        """Return the answer, to be closed by the caller; ``path`` with its query, as it is written.

        Raises UnresolvedError, UnreachedError, ssl.SSLError.
        """
        place = self.place(api)
        host, port = endpoint or self.endpoint(place)
        shown = f"[{host}]" if ":" in host else host
        headers["Host"], context = place.shown, self.context(api, trusting=trusting)
        try:
            return await self._asking().request(
                method, _as_written(f"https://{shown}:{port}{path}"), headers=headers, data=body or None,
                allow_redirects=False, ssl=context,
                server_hostname=f"{api.service}.{api.namespace}.svc", skip_auto_headers=AUTOMATIC,
            )  # fmt: skip
        except TimeoutError:
            raise UnreachedError(f"dial tcp {place.shown}: i/o timeout") from None
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachedError(unreached(error, place.shown)) from error

    async def read(self, api: RemoteApi, path: str, accept: str, *, limit_s: float = 5.0) -> tuple[int, str, bytes]:
        """(status, media type, body) as the aggregator reads a document of at most ``MOST_BYTES``.

        Raises UnresolvedError, UnreachedError, ssl.SSLError.
        """
        try:
            async with asyncio.timeout(limit_s):
                answer = await self.ask(api, "GET", path, identity_headers(AGGREGATOR, [("Accept", accept)]))
                async with answer:
                    return answer.status, answer.headers.get("Content-Type", ""), await whole(answer)
        except TimeoutError:
            raise UnreachedError("request timed out") from None
        except aiohttp.ClientError as error:
            raise UnreachedError(str(error)) from error

    def _asking(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False, connector=connector)
        return self._session

    async def close(self) -> None:
        """Close the connections that are kept."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def whole(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer.

    Raises UnreachedError for one of more than ``MOST_BYTES``.
    """
    found = bytearray()
    async for chunk in answer.content.iter_chunked(_AT_ONCE):
        found += chunk
        if len(found) > MOST_BYTES:
            raise UnreachedError(f"{answer.url.path}: a document of more than {MOST_BYTES >> 20} MiB")
    return bytes(found)


def _as_written(url: str) -> Any:
    """Return a URL whose escapes stay as they are: of aiohttp's own type."""
    return aiohttp.client.URL(url, encoded=True)  # type: ignore[attr-defined]


__all__ = ["AGGREGATOR", "RemoteClient", "UnreachedError", "UnresolvedError", "identity_headers"]
