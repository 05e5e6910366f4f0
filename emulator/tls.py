"""Who a server is under TLS: a certificate and its key, given or made for the occasion."""

from __future__ import annotations

import argparse
import ipaddress
import socket
import ssl
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from mews.emulator.clock import unix_s
from mews.emulator.short_lived_folders import folder_for_a_while

VALID_DAYS = 365
SUBJECT: Mapping[str, str] = MappingProxyType(
    {
        "CommonName": "COMMON_NAME",
        "Organization": "ORGANIZATION_NAME",
        "OrganizationalUnit": "ORGANIZATIONAL_UNIT_NAME",
        "City": "LOCALITY_NAME",
        "State": "STATE_OR_PROVINCE_NAME",
        "Country": "COUNTRY_NAME",
        "Email": "EMAIL_ADDRESS",
    }
)
"""What Redfish calls the parts of a subject -> what X.509 does."""


class Identity(Struct, frozen=True):
    """Files of a certificate and its key, in PEM; ``ca`` is that of the authority that issued it, if it has one."""

    certificate: Path
    key: Path
    ca: Path | None = None

    def certificate_text(self) -> str:
        """Return the certificate alone."""
        return first_certificate(self.certificate.read_text(encoding="ascii"))

    def trusted(self) -> Path | None:
        """Return the file by which clients trust it: its authority's, or its own where it is its own authority; None
        where neither is known, and the machine's have to do."""
        if self.ca is not None:
            return self.ca
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.certificate_text())
        itself = any(found["subject"] == found["issuer"] for found in context.get_ca_certs())
        return self.certificate if itself else None


def first_certificate(text: str) -> str:
    """Return the first certificate of a PEM text.

    Raises ValueError.
    """
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    if begin not in text or end not in text:
        raise ValueError("no certificate in PEM")
    return text[text.index(begin) : text.index(end) + len(end)] + "\n"


def install(context: ssl.SSLContext, text: str) -> str:
    """Let a server's connections from now on use a certificate, with its key, given in PEM; the certificate alone.

    Raises ValueError; the server then goes on with the one that it had.
    """
    shown = first_certificate(text)
    with tempfile.TemporaryDirectory(prefix="mews-tls-") as folder:
        file = Path(folder) / "chassis.pem"
        file.touch(mode=0o600)
        try:
            file.write_text(text, encoding="ascii")
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file, password="")
            context.load_cert_chain(file, password="")
        except (ssl.SSLError, UnicodeEncodeError) as error:
            raise ValueError(str(error)) from error
    return shown


def add_tls_arguments(parser: argparse.ArgumentParser) -> None:
    """``--tls``, ``--insecure``, ``--certificate FILE``, ``--key FILE``."""
    parser.add_argument("--tls", action="store_true", help="use TLS where passwords are required; the default")
    parser.add_argument("--insecure", action="store_true", help="accept passwords and tokens over plain HTTP")
    parser.add_argument("--certificate", metavar="FILE", help="use this certificate, in PEM; default: a generated one")
    parser.add_argument("--key", metavar="FILE", help="use this private key, in PEM")


def identity(certificate: str | None, key: str | None) -> Identity | None:
    """Return the identity that the command line asks for; None where it names none.

    Raises ValueError where half of it is missing or a file is none.
    """
    if (certificate is None) != (key is None):
        raise ValueError("--certificate and --key: must be given together")
    if certificate is not None and key is not None:
        for path in (certificate, key):
            if not Path(path).is_file():
                raise ValueError(f"{path}: no such file; must be a PEM file")
        return _checked(Identity(Path(certificate), Path(key)))
    return None


def trust_of(identities: Iterable[Identity]) -> Path | None:
    """Return one file by which clients trust all of these; None where there is none that they need."""
    files = list(dict.fromkeys(file for each in identities if (file := each.trusted()) is not None))
    if len(files) < 2:
        return files[0] if files else None
    bundle = folder_for_a_while() / "ca.crt"
    bundle.write_text("".join(file.read_text(encoding="ascii") for file in files), encoding="ascii")
    return bundle


def made_for_a_while() -> Identity:
    """Return a self-signed certificate whose files are gone when this process ends."""
    return made(folder_for_a_while())


def _checked(given: Identity) -> Identity:
    """Return the same, if a server can use it.

    Raises ValueError.
    """
    try:
        given.certificate_text()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(given.certificate, given.key, password="")
    except UnicodeDecodeError as error:
        raise ValueError(f"--certificate {given.certificate}: not a PEM file") from error
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ValueError(f"--certificate {given.certificate} --key {given.key}: cannot be used: {error}") from error
    return given


def made(folder: Path, names: Sequence[str] = ()) -> Identity:
    """Return a self-signed certificate for this machine and further ``names``, valid for a year; the key only its owner
    may read."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mews chassis")])
    now = datetime.fromtimestamp(unix_s(), UTC)
    hosts = [x509.DNSName(each) for each in ("localhost", socket.gethostname(), *names)]
    addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", "::1")]
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([*hosts, *addresses]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate = folder / "chassis.crt"
    certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    file = folder / "chassis.key"
    file.touch(mode=0o600)
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return Identity(certificate, file)


def signing_request(subject: Mapping[str, str], names: Sequence[str]) -> tuple[str, str]:
    """Return a request by which an authority can issue a certificate, and the private key to go with it, both in PEM.

    ``subject``: attribute -> value, by the names of ``SUBJECT``. Raises ValueError for a value that none can have.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(getattr(NameOID, SUBJECT[name]), value) for name, value in subject.items()]
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    if names:
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        request = request.add_extension(alternatives, critical=False)
    signed = request.sign(key, hashes.SHA256())
    kept = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return signed.public_bytes(serialization.Encoding.PEM).decode(), kept.decode()


def _general_name(name: str) -> Any:
    """Return a DNS name, or an IP address. Raises ValueError."""
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
