"""The TLS side of a served API: an authority of its own, and the server's certificate signed by it."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_VALID_DAYS = 365
_NAMES = (
    "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
)  # fmt: skip
_ADDRESSES = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files in a folder: ``authority`` is what clients trust; ``key`` only its owner may read."""

    authority: Path
    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """Return the TLS context of a server that shows this certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def client_context(self) -> ssl.SSLContext:
        """Trusts this authority and no other."""
        return ssl.create_default_context(cafile=str(self.authority))


def make_certificates(folder: Path, now_s: float) -> Certificates:
    """Make an authority, sign a server's certificate for loopback with it, and forget the authority's key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    made = Certificates(folder / "ca.crt", folder / "apiserver.crt", folder / "apiserver.key")
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _certificate("mews-ca", authority_key, signed_by=("mews-ca", authority_key), now_s=now_s)
    certificate = _certificate("kube-apiserver", key, signed_by=("mews-ca", authority_key), now_s=now_s)
    pem = serialization.Encoding.PEM
    made.authority.write_bytes(authority.public_bytes(pem))
    made.certificate.write_bytes(certificate.public_bytes(pem))
    made.key.touch(mode=0o600)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    made.key.write_bytes(key.private_bytes(pem, form, plain))
    return made


def _certificate(
    name: str, key: EllipticCurvePrivateKey, *, signed_by: tuple[str, EllipticCurvePrivateKey], now_s: float
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    issuer, issuer_key = signed_by
    authority = issuer == name
    now = datetime.fromtimestamp(now_s, UTC)
    uses = dict.fromkeys(_USES, False) | dict.fromkeys(_SIGNS if authority else _SERVES, True)
    built = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.KeyUsage(**uses), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if not authority:
        names: list[Any] = [x509.DNSName(each) for each in _NAMES]
        names += [x509.IPAddress(ipaddress.ip_address(each)) for each in _ADDRESSES]
        built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
        built = built.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return built.sign(issuer_key, hashes.SHA256())


_SIGNS = ("key_cert_sign", "crl_sign", "digital_signature")
_SERVES = ("digital_signature",)
_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip
