"""Bearer tokens (contract apiserver.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from mews.harness.clusters.embedded.routes import Route
from mews.kube.api.errors import Forbidden, Unauthorized

ADMIN = "system:admin"
ANONYMOUS = "system:anonymous"
SERVICE_ACCOUNT = "system:serviceaccount:"

_OPEN = ("/version", "/healthz", "/livez", "/readyz")


def groups_of(user: str) -> tuple[str, ...]:
    """The groups that a user belongs to."""
    if user == ANONYMOUS:
        return ("system:unauthenticated",)
    if user.startswith(SERVICE_ACCOUNT):
        namespace = user.removeprefix(SERVICE_ACCOUNT).partition(":")[0]
        return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return ("system:masters", "system:authenticated")


class Authenticator:
    """Who asks, and whether anonymous may. Every named user may do everything."""

    def __init__(self, tokens: Mapping[str, str] | None) -> None:
        self._tokens = tokens
        self._issued: dict[str, str] = {}

    def user_of(self, authorization: str) -> str:
        """The user; 401 for a token that is not known."""
        if self._tokens is None:
            return ADMIN
        scheme, _, token = authorization.partition(" ")
        if not authorization or scheme.lower() != "bearer":
            return ANONYMOUS
        user = self.owner_of(token.strip())
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def owner_of(self, token: str) -> str | None:
        """The user whose token that is, if it is known."""
        return (self._tokens or {}).get(token) or self._issued.get(token)

    def issue(self, token: str, user: str) -> None:
        """Know a token of a service account from now on."""
        self._issued[token] = user

    def allows(self, user: str) -> bool:
        """Whether a user may do what it asks: every named one may do everything."""
        return user != ANONYMOUS

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
