"""Accounts, roles and sessions: who may log in, who is locked out, who may do what."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from msgspec import Struct

from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.settings import ADMIN, RedfishSettings

LOGIN, SELF, USERS, MANAGER, COMPONENTS = (
    "Login",
    "ConfigureSelf",
    "ConfigureUsers",
    "ConfigureManager",
    "ConfigureComponents",
)
ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Administrator": (LOGIN, MANAGER, USERS, COMPONENTS, SELF),
        "Operator": (LOGIN, COMPONENTS, SELF),
        "ReadOnly": (LOGIN, SELF),
    }
)
"""The predefined roles and their privileges (DSP0266, privilege model)."""

MIN_PASSWORD, MAX_PASSWORD = 8, 128
MAX_SESSIONS = 64


class Account(Struct):
    """One account; ``digest`` is a salted hash of the password."""

    id: str
    name: str
    role: str
    salt: str
    digest: bytes = b""
    enabled: bool = True
    must_change: bool = False
    failures: int = 0
    locked_until_s: float = float("-inf")

    def may(self, privilege: str) -> bool:
        """Return whether its role has the privilege."""
        return privilege in ROLES[self.role]

    def locked(self, now_s: float) -> bool:
        """Return whether too many logins failed of late."""
        return now_s < self.locked_until_s


class Session(Struct):
    """A login; it ends when nobody used it for the service's timeout."""

    id: str
    token: str
    account: str
    begun_s: float
    used_s: float
    address: str = ""


@dataclass(slots=True)
class Accounts:
    """All accounts by ID, all sessions by token, and the rules that can be changed."""

    settings: RedfishSettings
    by_id: dict[str, Account] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    lockout_after: int = 0
    lockout_s: int = 0
    session_timeout_s: int = 0
    made: int = 0
    logins: int = 0

    def __post_init__(self) -> None:
        self.lockout_after, self.lockout_s = self.settings.lockout_after, self.settings.lockout_s
        self.session_timeout_s = self.settings.session_timeout_s
        self.create(ADMIN, self.settings.password, "Administrator")

    # Accounts

    def create(self, name: str, password: str, role: str) -> Account:
        """Return one more account.

        Raises RedfishError: 400 if the name is taken.
        """
        if self.named(name) is not None:
            raise fail(400, "ResourceAlreadyExists", "ManagerAccount", "UserName", name, about=("#/UserName",))
        self.made += 1
        account = Account(str(self.made), name, role, self.settings.secret())
        self.set_password(account, password)
        self.by_id[account.id] = account
        return account

    def named(self, name: str) -> Account | None:
        """Return the account of that name."""
        return next((account for account in self.by_id.values() if account.name == name), None)

    def set_password(self, account: Account, password: str) -> None:
        """Change a password; whatever demanded that is satisfied."""
        account.digest = _digest(account.salt, password)
        account.must_change = False

    def delete(self, account: Account) -> None:
        """Take an account away, and its sessions with it."""
        del self.by_id[account.id]
        self.end_sessions(account)

    def end_sessions(self, account: Account) -> None:
        """Log an account out everywhere."""
        self.sessions = {token: each for token, each in self.sessions.items() if each.account != account.id}

    # Logging in

    def login(self, name: str, password: str, now_s: float) -> Account | None:
        """Return the account if name and password are right and it is neither disabled nor locked out."""
        account = self.named(name)
        if account is None or not account.enabled or account.locked(now_s):
            return None
        if hmac.compare_digest(account.digest, _digest(account.salt, password)):
            account.failures = 0
            return account
        account.failures += 1
        if self.lockout_after and account.failures >= self.lockout_after:
            account.failures, account.locked_until_s = 0, now_s + self.lockout_s
        return None

    def open(self, account: Account, now_s: float, address: str) -> Session:
        """Return a session of an account that logged in.

        Raises RedfishError: 503 if all are taken.
        """
        self.expire(now_s)
        if len(self.sessions) >= MAX_SESSIONS:
            raise fail(503, "SessionLimitExceeded")
        self.logins += 1
        session = Session(str(self.logins), self.settings.secret(), account.id, now_s, now_s, address)
        self.sessions[session.token] = session
        return session

    def session(self, token: str, now_s: float) -> Session | None:
        """Return the session of a token, used just now; None if there is none any more."""
        session = self.sessions.get(token)
        if session is None or now_s - session.used_s > self.session_timeout_s:
            return None
        session.used_s = now_s
        return session

    def expire(self, now_s: float) -> None:
        """End the sessions that nobody uses."""
        limit_s = now_s - self.session_timeout_s
        self.sessions = {token: each for token, each in self.sessions.items() if each.used_s >= limit_s}

    def session_by_id(self, name: str) -> Session | None:
        """Return the session of an ID."""
        return next((session for session in self.sessions.values() if session.id == name), None)


def password_problem(password: object) -> str | None:
    """Return the name of the message that says what is wrong with a password; None if nothing."""
    if not isinstance(password, str):
        return "PropertyValueTypeError"
    return None if MIN_PASSWORD <= len(password) <= MAX_PASSWORD else "PropertyValueFormatError"


def _digest(salt: str, password: str) -> bytes:
    return hashlib.sha256(f"{salt}:{password}".encode()).digest()
