"""Who may come in and what they may do, as all requests of a server share it."""

from __future__ import annotations

from msgspec import Struct

from mews.kube.emulated.core.wire.call import ServerContext
from mews.kube.emulated.packs.access.authentication import Authenticator
from mews.kube.emulated.packs.access.authorization import Authorizer


class ServerAccess(Struct, frozen=True):
    """Those who know."""

    authenticator: Authenticator
    authorizer: Authorizer


def access_of(world: ServerContext) -> ServerAccess:
    """Return that of a server."""
    assert isinstance(world.access, ServerAccess)
    return world.access
