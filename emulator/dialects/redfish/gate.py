"""Who asks, and may they: everything but the service root is refused before anything else about it is judged."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.accounts import LOGIN, Accounts
from mews.emulator.dialects.redfish.messages import RedfishError, RedfishMessage, fail
from mews.emulator.dialects.redfish.route import Requester
from mews.emulator.dialects.wire import Request

CHALLENGE = {"WWW-Authenticate": 'Basic realm="Redfish"'}
PUBLIC = frozenset({"/redfish", uris.ROOT, f"{uris.ROOT}/odata", f"{uris.ROOT}/$metadata", uris.OPENAPI})
OFFERED = {
    f"{uris.ROOT}/$metadata": "application/xml",
    uris.OPENAPI: "application/yaml",
    uris.SSE: "text/event-stream",
}
"""Path -> its type, where that is not JSON."""
SECRETS = ("x-auth-token", "authorization")
LOGINS = frozenset({uris.SESSIONS, f"{uris.SESSIONS}/Members"})


def identify(request: Request, path: str, accounts: Accounts, now_s: float) -> Requester:
    """Return who asks.

    Raises RedfishError: 401 where that must be known and is not; 403 for a password or a token over plain HTTP, unless
    the settings take them: what anybody could have read proves nothing.
    """
    if not request.secure and not accounts.settings.plain_logins and _shows_a_secret(request, path):
        raise fail(403, "AccessDenied", f"{path} over plain HTTP")
    if request.method in ("GET", "HEAD") and path in PUBLIC:
        return Requester()
    if request.method == "POST" and path in LOGINS:
        return Requester()
    who = _known(request, accounts, now_s)
    if who is None:
        raise RedfishError(401, (RedfishMessage("NoValidSession"),), CHALLENGE)
    return who


def _shows_a_secret(request: Request, path: str) -> bool:
    return (request.method == "POST" and path in LOGINS) or not request.headers.keys().isdisjoint(SECRETS)


def _known(request: Request, accounts: Accounts, now_s: float) -> Requester | None:
    token = request.headers.get("x-auth-token")
    if token is not None:
        session = accounts.session(token, now_s)
        account = accounts.by_id.get(session.account) if session else None
        return Requester(account, session) if account is not None and account.enabled else None
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic" or not request.secure:
        return None
    try:
        name, colon, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except ValueError:  # no Base64, or no text
        return None
    account = accounts.login(name, password, now_s) if colon else None
    return None if account is None else Requester(account)


def acceptable(request: Request, path: str) -> None:
    """See to it that whoever asks takes what there is: JSON in plain bytes, but for the metadata and the stream.

    Raises RedfishError: 406.
    """
    offered = OFFERED.get(path, "application/json")
    types = dict(_weighed(request.headers.get("accept", "")))
    if types and not _weight(types, offered, f"{offered.partition('/')[0]}/*", "*/*"):
        raise fail(406, "HeaderInvalid", "Accept")
    encodings = dict(_weighed(request.headers.get("accept-encoding", "")))
    if _weight(encodings, "identity", "*") == 0:
        raise fail(406, "HeaderInvalid", "Accept-Encoding")


def _weight(weights: Mapping[str, float], *names: str) -> float | None:
    """Return the value of the first of these names that a header has, the most particular being first."""
    return next((weights[name] for name in names if name in weights), None)


def _weighed(header: str) -> Iterator[tuple[str, float]]:
    for part in filter(None, (each.strip() for each in header.split(","))):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        given = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        try:
            yield name, float(given)
        except ValueError:
            yield name, 1.0


def admit(who: Requester, method: str, path: str, privilege: str) -> None:
    """Let a known caller do it.

    Raises RedfishError: 403.
    """
    if who.account is None:
        return
    own = f"{uris.ACCOUNTS}/{who.account.id}"
    if who.account.must_change and not _while_it_must_change(who, method, path, own):
        raise fail(403, "PasswordChangeRequired", own)
    if not who.may(LOGIN if method in ("GET", "HEAD", "OPTIONS") else privilege):
        raise fail(403, "InsufficientPrivilege")


def _while_it_must_change(who: Requester, method: str, path: str, own: str) -> bool:
    if path == own:
        return method in ("GET", "HEAD", "PATCH")
    if who.session is not None and path == f"{uris.SESSIONS}/{who.session.id}":
        return method in ("GET", "HEAD", "DELETE")
    return path in PUBLIC
