"""The key that tokens of service accounts are signed with: ECDSA on P-256, as JWS has it (RFC 7518 section 3.4)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

_HALF = 32
"""Bytes of each of the two numbers of a signature, and of a point."""


class TokenSigner:
    """A key of its own; it lives as long as the server."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        der = self._key.public_key().public_bytes(serialization.Encoding.DER, form)
        self.name = _coded(hashlib.sha256(der).digest())
        """The key's ID: the hash of the public key, as kube-apiserver names it."""

    def public(self) -> Mapping[str, str]:
        """Return them as a JWK."""
        numbers = self._key.public_key().public_numbers()
        point = {"x": _coded(numbers.x.to_bytes(_HALF, "big")), "y": _coded(numbers.y.to_bytes(_HALF, "big"))}
        return {"use": "sig", "kty": "EC", "kid": self.name, "crv": "P-256", "alg": "ES256", **point}

    def sign(self, text: bytes) -> bytes:
        """Return the signature."""
        first, second = decode_dss_signature(self._key.sign(text, ec.ECDSA(hashes.SHA256())))
        return first.to_bytes(_HALF, "big") + second.to_bytes(_HALF, "big")

    def signed(self, text: bytes, signature: bytes) -> bool:
        """Return whether that is this key's signature."""
        if len(signature) != 2 * _HALF:
            return False
        first, second = (int.from_bytes(half, "big") for half in (signature[:_HALF], signature[_HALF:]))
        try:
            shown = encode_dss_signature(first, second)
            self._key.public_key().verify(shown, text, ec.ECDSA(hashes.SHA256()))
        except (InvalidSignature, ValueError):
            return False
        return True


def _coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
