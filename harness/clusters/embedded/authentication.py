"""Bearer tokens (contract apiserver.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from mews.harness.clusters.embedded.routes import Route
from mews.kube.api.errors import Forbidden, Unauthorized

ADMIN = "system:admin"
ANONYMOUS = "system:anonymous"

_OPEN = ("/version", "/healthz", "/livez", "/readyz")


class Authenticator:
    """Who asks, and whether anonymous may. Every named user may do everything."""

    def __init__(self, tokens: Mapping[str, str] | None) -> None:
        self._tokens = tokens

    def user_of(self, authorization: str) -> str:
        """The user; 401 for a token that is not known."""
        if self._tokens is None:
            return ADMIN
        scheme, _, token = authorization.partition(" ")
        if not authorization or scheme.lower() != "bearer":
            return ANONYMOUS
        user = self._tokens.get(token.strip())
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def check(self, user: str, verb: str, route: Route) -> None:
        """403 for what anonymous asks of a resource."""
        if user != ANONYMOUS:
            return
        what = f"{route.plural}{f'.{route.group}' if route.group else ''}"
        named = f'{what} "{route.name}"' if route.name else what
        where = f'in the namespace "{route.namespace}"' if route.namespace else "at the cluster scope"
        details = {"name": route.name, "group": route.group, "kind": route.plural}
        raise Forbidden(
            f'{named} is forbidden: User "{user}" cannot {verb} resource "{route.label}" in API group '
            f'"{route.group}" {where}',
            details={key: value for key, value in details.items() if value},
        )

    def check_path(self, user: str, request: web.BaseRequest) -> None:
        """403 for what anonymous asks of other paths."""
        if user == ANONYMOUS and not request.path.startswith(_OPEN):
            raise Forbidden(f'forbidden: User "{user}" cannot {request.method.lower()} path "{request.path}"')
