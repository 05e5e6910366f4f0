"""Who asks: bearer tokens and impersonation (contract apiserver.md section 2)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from multidict import CIMultiDictProxy

from mews.kube.api.errors import UnauthorizedError
from mews.kube.emulated.core.store.users import (
    ADMIN,
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    User,
    account_groups,
    account_of,
    administrator,
)
from mews.kube.emulated.packs.access.account_tokens import AUDIENCE, AccountTokens, WrongAudienceError
from mews.kube.emulated.packs.access.authorization import Attributes, Authorizer

Headers = CIMultiDictProxy[str]

_AUTHENTICATION = "authentication.k8s.io"
_EXTRA = "impersonate-extra-"


class Authenticator:
    """Knows users by their tokens; ``tokens`` None lets everybody be the administrator who shows none."""

    def __init__(
        self, tokens: Mapping[str, str | User] | None, accounts: AccountTokens, authorizer: Authorizer
    ) -> None:
        self._open = tokens is None
        self._tokens = {
            token: administrator(user) if isinstance(user, str) else user for token, user in (tokens or {}).items()
        }
        self.accounts = accounts
        self._authorizer = authorizer

    def user_of(self, headers: Headers) -> User:
        """Return the user, also the one whose part another plays.

        Raises ``UnauthorizedError`` for a token that is not known, ``ForbiddenError`` for an impersonation that is not
        allowed.
        """
        user = self._bearer(headers.get("Authorization", ""))
        played = _impersonated(headers)
        if played is None:
            return user
        for attributes in _asked(played):
            self._authorizer.check(user, attributes)
        return _whole(played)

    def _bearer(self, authorization: str) -> User:
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        found = self.owner_of(token) if token and scheme.lower() == "bearer" else None
        if found is not None:
            return found
        if self._open:
            return ADMIN
        if token and scheme.lower() == "bearer":
            raise UnauthorizedError("Unauthorized")
        return ANONYMOUS

    def reviewed(self, token: str, audiences: Sequence[str]) -> tuple[User | None, list[str]]:
        """Return the user whose token that is, and for which of these audiences it is ([]: for the API). The
        administrators' are for the API.

        Raises WrongAudienceError.
        """
        wanted = list(audiences) or [AUDIENCE]
        found = self._administrator(token)
        if found is not None:
            return (found, [AUDIENCE]) if AUDIENCE in wanted else (None, [])
        fitting = self.accounts.audiences(token, wanted)
        return self.accounts.owner(token), fitting

    def owner_of(self, token: str) -> User | None:
        """Return the user whose token for the API that is, if it is known."""
        try:
            return self.reviewed(token, ())[0]
        except WrongAudienceError:
            return None

    def _administrator(self, token: str) -> User | None:
        asked, found = token.encode(errors="replace"), None
        for known, user in self._tokens.items():
            if hmac.compare_digest(known.encode(), asked):
                found = user
        return found


class ImpersonationError(Exception):
    """What is to be impersonated is no user; upstream answers 500 in plain text."""


def _impersonated(headers: Headers) -> User | None:
    """Return who is to be impersonated; 500 in plain words for groups without a user, as upstream."""
    name, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA):
            key = unquote(header.lower().removeprefix(_EXTRA))
            extra[key] = (*extra.get(key, ()), value)
    if name:
        return User(name, groups, uid, extra)
    if groups or uid or extra:
        parts = [f"{{Group  {group}    }}" for group in groups]
        parts += [f"{{UserExtra  {value}  {_AUTHENTICATION}/v1  {key}}}" for key in extra for value in extra[key]]
        parts += [f"{{UID  {uid}  {_AUTHENTICATION}/v1  }}"] if uid else []
        raise ImpersonationError(f"requested [{' '.join(parts)}] without impersonating a user")
    return None


def _asked(played: User) -> list[Attributes]:
    account = account_of(played.name)
    who = (
        Attributes("impersonate", "", "serviceaccounts", name=account[1], namespace=account[0])
        if account
        else Attributes("impersonate", "", "users", name=played.name)
    )
    asked = [who, *(Attributes("impersonate", "", "groups", name=group) for group in played.groups)]
    for key, values in played.extra.items():
        asked += [Attributes("impersonate", _AUTHENTICATION, "userextras", key, name=value) for value in values]
    if played.uid:
        asked.append(Attributes("impersonate", _AUTHENTICATION, "uids", name=played.uid))
    return asked


def _whole(played: User) -> User:
    """Return it with the groups that everybody of the sort has."""
    account = account_of(played.name)
    groups = played.groups or (account_groups(account[0]) if account else ())
    everybody = UNAUTHENTICATED if played.name == ANONYMOUS.name else AUTHENTICATED
    return User(played.name, tuple(dict.fromkeys((*groups, everybody))), played.uid, played.extra)
