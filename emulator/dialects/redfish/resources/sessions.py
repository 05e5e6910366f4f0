"""The session service: logging in and out."""

from __future__ import annotations

from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.accounts import MANAGER, SELF, Session
from mews.emulator.dialects.redfish.messages import RedfishMessage, fail
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref

SERVICE = f"{uris.ROOT}/SessionService"


def service(view: RedfishView) -> Body:
    """Return the session service."""
    return resource(
        "SessionService",
        SERVICE,
        "Session service",
        ServiceEnabled=True,
        SessionTimeout=view.state.accounts.session_timeout_s,
        Status=dict(OK),
        Sessions=ref(uris.SESSIONS),
    )


def patch_service(call: RedfishWrite) -> Done:
    """Return how long a session lives that nobody uses."""
    call.state.accounts.session_timeout_s = call.body["SessionTimeout"]
    return Done()


def sessions(view: RedfishView) -> Body:
    """Return all sessions."""
    accounts = view.state.accounts
    accounts.expire(view.now_s)
    return collection(
        "Session", uris.SESSIONS, "Sessions", [f"{uris.SESSIONS}/{each.id}" for each in accounts.sessions.values()]
    )


def session(view: RedfishView, name: str) -> Body | None:
    """Return one session."""
    view.state.accounts.expire(view.now_s)
    found = view.state.accounts.session_by_id(name)
    return None if found is None else _body(view, found)


def _body(view: RedfishView, found: Session) -> Body:
    account = view.state.accounts.by_id[found.account]
    shown = {"ClientOriginIPAddress": found.address} if found.address else {}
    return resource(
        "Session",
        f"{uris.SESSIONS}/{found.id}",
        f"Session {found.id}",
        UserName=account.name,
        Password=None,
        CreatedTime=view.state.stamp(found.begun_s),
        Roles=[account.role],
        SessionType="Redfish",
        **shown,
    )


def login(call: RedfishWrite) -> Done:
    """Log in: 201, the token and where the session is.

    Raises RedfishError: 400 without a name and a password, 401 where they are wrong.
    """
    for name in ("UserName", "Password"):
        if name not in call.body:
            raise fail(400, "CreateFailedMissingReqProperties", name, about=(f"#/{name}",))
        if not isinstance(call.body[name], str):
            raise fail(400, "PropertyValueTypeError", "…", name, about=(f"#/{name}",))
    accounts = call.state.accounts
    account = accounts.login(call.body["UserName"], call.body["Password"], call.now_s)
    if account is None:
        raise fail(401, "UnauthorizedLoginAttempt")
    made = accounts.open(account, call.now_s, call.request.address)
    body = _body(call.view, made)
    if account.must_change:
        body["@Message.ExtendedInfo"] = [
            RedfishMessage("PasswordChangeRequired", (f"{uris.ACCOUNTS}/{account.id}",)).render(),
        ]
    return Done(201, body, {"Location": body["@odata.id"], "X-Auth-Token": made.token})


def logout(call: RedfishWrite) -> Done:
    """End a session: one's own, or with ConfigureManager anybody's.

    Raises RedfishError: 403.
    """
    found = call.state.accounts.session_by_id(call.args[0])
    assert found is not None
    own = call.who.account is not None and call.who.account.id == found.account
    if not own and not call.who.may(MANAGER):
        raise fail(403, "InsufficientPrivilege")
    del call.state.accounts.sessions[found.token]
    return Done()


RULES = {"SessionTimeout": patching.number(30, 86400)}
ROUTES = (
    RedfishRoute(SERVICE, service, rules=RULES, patch=patch_service, privilege=MANAGER),
    RedfishRoute(uris.SESSIONS, sessions, post=login),
    RedfishRoute(f"{uris.SESSIONS}/{{session}}", session, delete=logout, privilege=SELF),
)
