"""Tokens of service accounts: signed claims in the form of a JSON web token, good while their account is there."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.kube.api.resources import NODES, PODS, Resource
from mews.kube.emulated.core.store.users import SERVICE_ACCOUNT, User, account_groups

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store
    from mews.kube.emulated.packs.access.token_signer import TokenSigner

AUDIENCE = "https://kubernetes.default.svc"
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_SECRETS = Resource("", "v1", "secrets", "Secret")
BOUND: Mapping[str, Resource] = {"Pod": PODS, "Secret": _SECRETS, "Node": NODES}
"""What a token may be bound to, by kind."""

_REMEMBERED = 1000
_EXTRA = "authentication.kubernetes.io/"


class WrongAudienceError(Exception):
    """A token is for somebody else, in the words of jwtTokenAuthenticator (pkg/serviceaccount/jwt.go)."""


class AccountTokens:
    """Signs and reads them; the key lives as long as the server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._signer: TokenSigner | None = None
        self._claims: dict[str, dict[str, Any]] = {}

    @property
    def _key(self) -> TokenSigner:
        """Made when it is first needed: it costs some milliseconds."""
        if self._signer is None:
            from mews.kube.emulated.packs.access.token_signer import TokenSigner

            self._signer = TokenSigner()
        return self._signer

    def configuration(self, url: str) -> Mapping[str, Any]:
        """Return how strangers check tokens (OpenID Connect Discovery 1.0)."""
        return {
            "issuer": AUDIENCE,
            "jwks_uri": f"{url}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }

    def public_keys(self) -> Mapping[str, Any]:
        """Return the keys that tokens are signed with, as a JWK set."""
        return {"keys": [self._key.public()]}

    def issue(self, account: Mapping[str, Any], audiences: list[str], lifetime_s: int, bound: Mapping[str, Any]) -> str:
        """Return a token for an account, ``bound`` to ``{kind: {name, uid}}`` or to nothing."""
        metadata, now_s = account["metadata"], int(self._store.now())
        named = {kind.lower(): reference for kind, reference in bound.items()}
        about = {"serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]}, **named}
        claims = {
            "aud": audiences,
            "exp": now_s + lifetime_s,
            "iat": now_s,
            "iss": AUDIENCE,
            "jti": self._store.new_uid(),
            "kubernetes.io": {"namespace": metadata["namespace"], **about},
            "nbf": now_s,
            "sub": f"{SERVICE_ACCOUNT}{metadata['namespace']}:{metadata['name']}",
        }
        head = {"alg": "ES256", "kid": self._key.name}
        text = ".".join(_coded(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))
        return f"{text}.{_coded(self._key.sign(text.encode()))}"

    def _checked(self, token: str) -> dict[str, Any] | None:
        """Return what a token claims, if it is signed here; remembered, since a client shows its own every time."""
        known = self._claims.get(token)
        if known is None:
            text, dot, signature = token.rpartition(".")
            if not dot or text.count(".") != 1 or not self._key.signed(text.encode(), _bytes(signature)):
                return None
            known = _claims(text.partition(".")[2])
            if len(self._claims) >= _REMEMBERED:
                self._claims.clear()
            self._claims[token] = known
        return known

    def audiences(self, token: str, wanted: Sequence[str]) -> list[str]:
        """Return them for which of the wanted ones a token is; none for a strange one.

        Raises WrongAudienceError for a token that is for others.
        """
        claims = self._checked(token)
        if claims is None:
            return []
        found = [each for each in claims["aud"] if each in wanted]
        if not found:
            meant, asked = (" ".join(json.dumps(each) for each in group) for group in (claims["aud"], wanted))
            text = f"token audiences [{meant}] is invalid for the target audiences [{asked}]"
            raise WrongAudienceError(f"[invalid bearer token, {text}]")
        return found

    def owner(self, token: str) -> User | None:
        """Return whose token that is; None for a strange or expired one, once its account or what it is bound to is
        gone. For whom it is must have been looked at before."""
        claims = self._checked(token)
        if claims is None:
            return None
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        if claims["exp"] <= self._store.now() or not self._lives(_ACCOUNTS, namespace, account):
            return None
        extra = {f"{_EXTRA}credential-id": (f"JTI={claims['jti']}",)}
        for kind, resource in BOUND.items():
            reference = about.get(kind.lower())
            if reference is None:
                continue
            of_its_pod = kind == NODES.kind and PODS.kind.lower() in about  # told of, not bound to
            if not of_its_pod and not self._lives(resource, namespace, reference):
                return None
            if kind != "Secret":
                extra[f"{_EXTRA}{kind.lower()}-name"] = (reference["name"],)
                if reference.get("uid"):
                    extra[f"{_EXTRA}{kind.lower()}-uid"] = (reference["uid"],)
        return User(claims["sub"], account_groups(namespace), account["uid"], extra)

    def _lives(self, resource: Resource, namespace: str, reference: Mapping[str, str]) -> bool:
        place = namespace if resource.namespaced else ""
        found = self._store.find(self._store.kinds.of(resource), place, reference["name"])
        return found is not None and found["metadata"]["uid"] == reference["uid"]


def _coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    """Return what base64 says; nothing for what is none."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _claims(text: str) -> dict[str, Any]:
    """Return what the server itself has signed.

    Raises ValueError for anything else, which cannot bear its signature.
    """
    try:
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except binascii.Error as error:
        raise ValueError(f"a signed token that was not made here: {text!r}") from error
    return claims
