"""The token service: who logs in gets a JWT, whose ``exp`` decides how long it is good for (contract cohdi.md 2.1)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from typing import Any
from urllib.parse import parse_qsl

from mews.emulator.dialects.wire import JSON, Request, Response, as_json

TOKEN_PATH = re.compile(r"/id_manager/realms/([^/]+)/protocol/openid-connect/token")
LIFETIME_S = 300
"""Real seconds that a token is good for; assumed."""
_NEEDED = ("grant_type", "username", "password", "client_id", "client_secret")


class TokenService:
    """One realm's tokens. Each is signed with a key of this process, so it needs no memory, and ends with it.

    ``user`` and ``password`` are the only account; any client with a secret, and any realm, is let in. Nothing that it
    answers or refuses repeats a password or a secret.
    """

    def __init__(self, user: str, password: str, key: str, tenant: str) -> None:
        self._user, self._password, self._tenant = user, password, tenant
        self._key = key.encode()
        self._not_before_s = 0
        self._made = self._revoked = 0

    def answer(self, request: Request, realm: str, now_s: float) -> Response:
        """Return the reply to a login; ``now_s`` is Unix time. Errors have the form of OAuth (RFC 6749, 5.2)."""
        if request.method != "POST":
            return _refused(405, "invalid_request", "the token endpoint takes POST", {"Allow": "POST"})
        try:
            form = read_form(request.body)
        except ValueError as error:
            return _refused(400, "invalid_request", str(error))
        missing = [name for name in _NEEDED if not form.get(name)]
        if missing:
            return _refused(400, "invalid_request", f"the form lacks {', '.join(missing)}")
        if form["grant_type"] != "password":
            return _refused(400, "unsupported_grant_type", "grant_type must be password")
        known = form["username"] == self._user and hmac.compare_digest(
            form["password"].encode(), self._password.encode()
        )
        if not known:
            return _refused(401, "invalid_grant", "Invalid user credentials")
        return self._grant(realm, form["client_id"], now_s)

    def _grant(self, realm: str, client: str, now_s: float) -> Response:
        self._made += 1
        claims = {
            "exp": int(now_s) + LIFETIME_S,
            "iat": int(now_s),
            "jti": self._made,
            "iss": f"/id_manager/realms/{realm}",
            "azp": client,
            "preferred_username": self._user,
            "tenant_uuid": self._tenant,
        }
        token = self._signed(claims)
        body = {
            "access_token": token,
            "expires_in": LIFETIME_S,
            "refresh_expires_in": 0,
            "refresh_token": "",
            "token_type": "Bearer",
            "id_token": token,
            "not-before-policy": self._not_before_s,
            "session_state": f"{self._made:08x}",
            "scope": "openid",
        }
        return Response(200, {**JSON, "Cache-Control": "no-store"}, as_json(body))

    def why_not(self, request: Request, now_s: float) -> str:
        """Return why a request is not let in; empty where its bearer token is good."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return "a bearer token is required"
        claims = self._claims(token.strip())
        if claims is None:
            return "the token is not one of this service"
        if now_s >= claims["exp"]:
            return "the token has expired"
        if claims["jti"] <= self._revoked:
            return "the token was revoked"
        return ""

    def revoke(self, now_s: float) -> None:
        """End all tokens that were given before."""
        self._not_before_s, self._revoked = int(now_s), self._made

    def _signed(self, claims: dict[str, Any]) -> str:
        text = f"{_packed(as_json({'alg': 'HS256', 'typ': 'JWT'}))}.{_packed(as_json(claims))}"
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        return _packed(hmac.new(self._key, text.encode(), hashlib.sha256).digest())

    def _claims(self, token: str) -> dict[str, Any] | None:
        text, _, signature = token.rpartition(".")
        if not hmac.compare_digest(self._signature(text).encode(), signature.encode()):
            return None
        packed = text.partition(".")[2]
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
        return claims


def read_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form, url-encoded or, as composable-dra-driver sends it, with raw spaces (cohdi.md 2.1).

    Raises ValueError for what is no form.
    """
    try:
        text = body.decode("utf-8")
        return dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=50))
    except ValueError:
        raise ValueError("the body must be a form, name=value&…") from None


def _packed(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _refused(status: int, error: str, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(status, {**JSON, **(headers or {})}, as_json({"error": error, "error_description": text}))
