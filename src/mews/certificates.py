"""Who our servers on loopback are under TLS: an authority of a run's own, and one certificate signed by it.

Every face that a run serves shows the same certificate, so that a client has one file to trust. Imports what makes
certificates only where they are made: that takes a tenth of a second, which those who merely name the files save.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_VALID_DAYS = 365
_NAMES = (
    "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
)  # fmt: skip
_ADDRESSES = ("127.0.0.1", "::1")
_AUTHORITY, _SERVER, _KUBELET = "mews-ca", "mews", "system:node"
FRONT_PROXY = "front-proxy-client"
"""What the API server is called where it passes requests on, as kubeadm calls it."""
_FRONT_AUTHORITY = "front-proxy-ca"


class Certificates(Struct, frozen=True):
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


def certificates_in(folder: Path) -> Certificates:
    """Return where ``make_certificates`` puts them; they need not be there yet."""
    return Certificates(folder / "ca.crt", folder / "server.crt", folder / "server.key")


class ClusterCertificates(Struct, frozen=True):
    """Those of a cluster: of the API server, of its nodes' kubelets, and by the same authority; ``front`` is what the
    API server shows to servers behind it, by an authority that has signed nothing else."""

    server: Certificates
    kubelet: Certificates
    front: Certificates


def cluster_certificates_in(folder: Path) -> ClusterCertificates:
    """Return where ``make_cluster_certificates`` puts them; they need not be there yet."""
    server = certificates_in(folder)
    kubelet = Certificates(server.authority, folder / "kubelet.crt", folder / "kubelet.key")
    front = Certificates(*(folder / f"front-proxy-{name}" for name in ("ca.crt", "client.crt", "client.key")))
    return ClusterCertificates(server, kubelet, front)


def make_certificates(folder: Path, now_s: float, names: Iterable[str] = ()) -> Certificates:
    """Make an authority, sign a server's certificate for loopback with it, and forget the authority's key.

    ``names``: further names and addresses of the server. The certificate appears last and whole, so that another
    process may wait for it.
    """
    made, authority = certificates_in(folder), _Authority(_AUTHORITY, now_s)
    _sign(authority, made, _SERVER, _names(names))
    return made


def make_cluster_certificates(
    folder: Path, now_s: float, names: Iterable[str] = (), *, nodes: Iterable[str] = ()
) -> ClusterCertificates:
    """Make those of a cluster likewise; ``nodes``: names and addresses of its nodes. The server's appears last."""
    made, authority = cluster_certificates_in(folder), _Authority(_AUTHORITY, now_s)
    _sign(_Authority(_FRONT_AUTHORITY, now_s), made.front, FRONT_PROXY, [])
    _sign(authority, made.kubelet, _KUBELET, list(dict.fromkeys((*_ADDRESSES, *nodes))))
    _sign(authority, made.server, _SERVER, _names(names))
    return made


def _names(more: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*_NAMES, *_ADDRESSES, *more)))


class _Authority:
    """Signs with a key that is forgotten with it."""

    def __init__(self, name: str, now_s: float) -> None:
        self.key = _new_key()
        self.now_s = now_s
        self.name = name
        self.certificate = _certificate(name, self.key, signed_by=(name, self.key), now_s=now_s)


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _sign(authority: _Authority, files: Certificates, name: str, names: Sequence[str]) -> None:
    """Write key, authority and certificate, in this order."""
    from cryptography.hazmat.primitives import serialization

    key, pem = _new_key(), serialization.Encoding.PEM
    signer = (authority.name, authority.key)
    certificate = _certificate(name, key, signed_by=signer, now_s=authority.now_s, names=names)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    _write(files.key, key.private_bytes(pem, form, plain), mode=0o600)
    _write(files.authority, authority.certificate.public_bytes(pem), mode=0o644)
    _write(files.certificate, certificate.public_bytes(pem), mode=0o644)


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file that is never seen in part, nor by others before it has its mode."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    part.replace(path)


def _certificate(
    name: str,
    key: EllipticCurvePrivateKey,
    *,
    signed_by: tuple[str, EllipticCurvePrivateKey],
    now_s: float,
    names: Sequence[str] = (),
) -> x509.Certificate:
    """Return that of a server with these names; without any, of an authority or a client."""
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
    shown: list[Any] = [_general_name(each) for each in names]
    if shown:
        built = built.add_extension(x509.SubjectAlternativeName(shown), critical=False)
    if not authority:
        use = ExtendedKeyUsageOID.SERVER_AUTH if shown else ExtendedKeyUsageOID.CLIENT_AUTH
        built = built.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
    return built.sign(issuer_key, hashes.SHA256())


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


_SIGNS = ("key_cert_sign", "crl_sign", "digital_signature")
_SERVES = ("digital_signature",)
_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip
