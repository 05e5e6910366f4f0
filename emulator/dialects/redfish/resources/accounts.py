"""The account service: accounts and roles."""

from __future__ import annotations

from typing import Any

from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.accounts import (
    MAX_PASSWORD,
    MIN_PASSWORD,
    ROLES,
    SELF,
    USERS,
    Account,
    password_problem,
)
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref

SERVICE = f"{uris.ROOT}/AccountService"
MOST = 32
"""Accounts."""


def service(view: RedfishView) -> Body:
    """Return the account service."""
    accounts = view.state.accounts
    return resource(
        "AccountService",
        SERVICE,
        "Account service",
        ServiceEnabled=True,
        HTTPBasicAuth="Enabled",
        AuthFailureLoggingThreshold=3,
        MinPasswordLength=MIN_PASSWORD,
        MaxPasswordLength=MAX_PASSWORD,
        AccountLockoutThreshold=accounts.lockout_after,
        AccountLockoutDuration=accounts.lockout_s,
        Status=dict(OK),
        SupportedAccountTypes=["Redfish"],
        Accounts=ref(uris.ACCOUNTS),
        Roles=ref(uris.ROLES),
    )


def patch_service(call: RedfishWrite) -> Done:
    """Return when accounts are locked out, and for how long."""
    accounts = call.state.accounts
    accounts.lockout_after = call.body.get("AccountLockoutThreshold", accounts.lockout_after)
    accounts.lockout_s = call.body.get("AccountLockoutDuration", accounts.lockout_s)
    return Done()


def accounts(view: RedfishView) -> Body:
    """Return all accounts."""
    found = [f"{uris.ACCOUNTS}/{name}" for name in view.state.accounts.by_id]
    return collection("ManagerAccount", uris.ACCOUNTS, "Accounts", found)


def account(view: RedfishView, name: str) -> Body | None:
    """Return one account; its password is never shown."""
    found = view.state.accounts.by_id.get(name)
    if found is None:
        return None
    return resource(
        "ManagerAccount",
        f"{uris.ACCOUNTS}/{name}",
        f"Account {found.name}",
        UserName=found.name,
        Password=None,
        RoleId=found.role,
        Enabled=found.enabled,
        Locked=found.locked(view.now_s),
        PasswordChangeRequired=found.must_change,
        AccountTypes=["Redfish"],
        Links={"Role": ref(f"{uris.ROLES}/{found.role}")},
    )


def create(call: RedfishWrite) -> Done:
    """Return one more account.

    Raises RedfishError: 400, 403.
    """
    if not call.who.may(USERS):
        raise fail(403, "InsufficientPrivilege")
    body = call.body
    for name in ("UserName", "Password", "RoleId"):
        if name not in body:
            raise fail(400, "CreateFailedMissingReqProperties", name, about=(f"#/{name}",))
    for name, value in body.items():
        rule = RULES.get(name)
        wrong = "PropertyUnknown" if rule is None else rule(value)
        if wrong is not None and not name.startswith("@odata.") and name not in ("AccountTypes", "Name"):
            args = (name,) if rule is None else (_shown(name, value), name)
            raise fail(400, wrong, *args, about=(f"#/{name}",))
    if len(call.state.accounts.by_id) >= MOST:
        raise fail(400, "OperationFailed", f"there are {MOST} accounts already")
    made = call.state.accounts.create(body["UserName"], body["Password"], body["RoleId"])
    _apply(call, made, {name: body[name] for name in ("Enabled", "Locked", "PasswordChangeRequired") if name in body})
    shown = account(call.view, made.id)
    return Done(201, shown, {"Location": f"{uris.ACCOUNTS}/{made.id}"})


def _shown(name: str, value: object) -> str:
    return "…" if name == "Password" else str(value)[:100]


def patch(call: RedfishWrite) -> Done:
    """Change an account: one's own password, or with ConfigureUsers anything of anybody's.

    Raises RedfishError: 403, and 400 for a name that is taken.
    """
    found = call.state.accounts.by_id[call.args[0]]
    own = call.who.account is found
    if not call.who.may(USERS) and not (own and set(call.body) == {"Password"}):
        raise fail(403, "InsufficientPrivilege")
    name = call.body.get("UserName")
    taken = call.state.accounts.named(name) if name is not None else None
    if taken is not None and taken is not found:
        raise fail(400, "ResourceAlreadyExists", "ManagerAccount", "UserName", name, about=("#/UserName",))
    _apply(call, found, dict(call.body))
    return Done()


def _apply(call: RedfishWrite, found: Account, changes: dict[str, Any]) -> None:
    found.name = changes.get("UserName", found.name)
    found.role = changes.get("RoleId", found.role)
    found.enabled = changes.get("Enabled", found.enabled)
    if "Locked" in changes:
        found.locked_until_s, found.failures = float("-inf"), 0
    if "Password" in changes:
        call.state.accounts.set_password(found, changes["Password"])
    if "PasswordChangeRequired" in changes:
        found.must_change = changes["PasswordChangeRequired"]
    if not found.enabled:
        call.state.accounts.end_sessions(found)


def delete(call: RedfishWrite) -> Done:
    """Take an account away; the last administrator stays.

    Raises RedfishError: 400, 403.
    """
    if not call.who.may(USERS):
        raise fail(403, "InsufficientPrivilege")
    found = call.state.accounts.by_id[call.args[0]]
    others = [each for each in call.state.accounts.by_id.values() if each is not found and each.may(USERS)]
    if not others:
        raise fail(400, "ResourceCannotBeDeleted")
    call.state.accounts.delete(found)
    return Done()


def roles(view: RedfishView) -> Body:
    """Return the predefined roles."""
    return collection("Role", uris.ROLES, "Roles", [f"{uris.ROLES}/{name}" for name in ROLES])


def role(view: RedfishView, name: str) -> Body | None:
    """Return one role."""
    if name not in ROLES:
        return None
    return resource(
        "Role",
        f"{uris.ROLES}/{name}",
        f"Role {name}",
        RoleId=name,
        IsPredefined=True,
        AssignedPrivileges=list(ROLES[name]),
        OemPrivileges=[],
    )


def _name(value: Any) -> str | None:
    if not isinstance(value, str):
        return "PropertyValueTypeError"
    return None if 1 <= len(value) <= 64 and ":" not in value else "PropertyValueFormatError"


SERVICE_RULES = {
    "AccountLockoutThreshold": patching.number(0, 100),
    "AccountLockoutDuration": patching.number(0, 86400),
}
RULES = {
    "UserName": _name,
    "Password": password_problem,
    "RoleId": patching.one_of(*ROLES),
    "Enabled": patching.boolean,
    "Locked": patching.one_of(False),
    "PasswordChangeRequired": patching.boolean,
}
ROUTES = (
    RedfishRoute(SERVICE, service, rules=SERVICE_RULES, patch=patch_service, privilege=USERS),
    RedfishRoute(uris.ACCOUNTS, accounts, post=create, privilege=USERS),
    RedfishRoute(f"{uris.ACCOUNTS}/{{account}}", account, rules=RULES, patch=patch, delete=delete, privilege=SELF),
    RedfishRoute(uris.ROLES, roles),
    RedfishRoute(f"{uris.ROLES}/{{role}}", role),
)
