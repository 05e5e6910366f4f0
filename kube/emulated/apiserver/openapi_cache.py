"""The one document of OpenAPI version 2: made once for the kinds that are served, and not sent to whoever has it."""

from __future__ import annotations

from aiohttp import web

from mews.kube.emulated.core.store.kinds import Registry
from mews.kube.emulated.core.wire import openapi
from mews.kube.emulated.core.wire.call import headers
from mews.kube.emulated.core.wire.negotiation import JSON, encode
from mews.kube.emulated.packs.aggregation.documents import RemoteDocuments
from mews.kube.emulated.packs.aggregation.openapi_parts import joined_swagger


class SwaggerCache:
    """Answers ``/openapi/v2``."""

    def __init__(self) -> None:
        self._tag = ""
        self._body = b""

    def answer(self, kinds: Registry, known: str, others: RemoteDocuments | None = None) -> web.Response:
        """Return the document with that of ``others``, or 304 where ``known`` (If-None-Match) names it."""
        grown = "" if others is None else others.generation or ""
        tag = f'"{openapi.digest([*kinds])}{grown}"'
        if tag != self._tag:
            self._tag = tag
            parts = [] if others is None else list(others.swaggers())
            self._body = encode(joined_swagger(openapi.swagger(kinds), parts), JSON)
        typed = {**headers(), "ETag": tag}
        if tag in (each.strip() for each in known.split(",")):
            return web.Response(status=304, headers=typed)
        return web.Response(body=self._body, headers={**typed, "Content-Type": JSON})
