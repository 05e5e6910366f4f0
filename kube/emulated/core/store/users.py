"""Who asks: names and groups as Kubernetes gives them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
SERVICE_ACCOUNT = "system:serviceaccount:"
_SERVICE_ACCOUNTS = "system:serviceaccounts"


class User(Struct, frozen=True):
    """A user as the API server knows it (authentication.k8s.io/v1 UserInfo)."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def info(self) -> dict[str, Any]:
        """UserInfo as on the wire."""
        shown = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        found: dict[str, Any] = {key: value for key, value in shown.items() if value}
        if self.extra:
            found["extra"] = {key: list(values) for key, values in self.extra.items()}
        return found


ADMIN = User("system:admin", (MASTERS, AUTHENTICATED))
"""Who asks where no credentials are asked for."""

ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def administrator(name: str) -> User:
    """Return an administrator of that name, as kube-apiserver reads one from a token file."""
    return User(name, (MASTERS, AUTHENTICATED), name)


def account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of a namespace's service accounts."""
    return (_SERVICE_ACCOUNTS, f"{_SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)


def account_of(name: str) -> tuple[str, str] | None:
    """(namespace, name) of a service account's user name; None for any other user."""
    if not name.startswith(SERVICE_ACCOUNT):
        return None
    namespace, colon, account = name.removeprefix(SERVICE_ACCOUNT).partition(":")
    return (namespace, account) if colon and namespace and account else None
