"""The one key, certificate and token of a control plane that lives for a few minutes on loopback."""

from __future__ import annotations

import secrets
import ssl
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from mews.harness.errors import RequirementError
from mews.own_files import write_own

_NAMES = "IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc,DNS:metrics-server.kube-system.svc"
_REQUEST = """
[req]
prompt = no
distinguished_name = name
[name]
CN = mews
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign
subjectKeyIdentifier = hash
subjectAltName = {names}
[node]
keyUsage = critical, digitalSignature
subjectAltName = {names}
"""
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_DAYS = "365"


class ControlPlaneIdentity(Struct, frozen=True):
    """A self-signed certificate that etcd and the API server show to each other and to clients, which signs that of the
    kubelets, and the administrator's bearer token. Files are readable by their owner alone; ``openssl`` makes them."""

    folder: Path
    token: str
    openssl: str

    @property
    def certificate(self) -> Path:
        """PEM; its own authority."""
        return self.folder / "mews.crt"

    @property
    def key(self) -> Path:
        """PEM; also signs service account tokens."""
        return self.folder / "mews.key"

    @property
    def tokens(self) -> Path:
        """What kube-apiserver reads its users from."""
        return self.folder / "tokens.csv"

    def client_context(self) -> ssl.SSLContext:
        """Trusts this certificate and no other."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def holder_context(self) -> ssl.SSLContext:
        """Shows this certificate, too: what etcd lets in."""
        context = self.client_context()
        context.load_cert_chain(self.certificate, self.key)
        return context

    def kubelet_context(self) -> ssl.SSLContext:
        """Serves with this certificate, and only those who show it: the API server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def node_context(self, addresses: Iterable[str]) -> ssl.SSLContext:
        """Serves everybody who looks for nodes at these addresses, and knows those who show this certificate.
        Blocking: makes the nodes' certificate.

        Raises RequirementError.
        """
        names = ",".join((_NAMES, *(f"IP:{address}" for address in addresses)))
        key, certificate, request = (self.folder / f"node.{ending}" for ending in ("key", "crt", "csr"))
        settings = self._settings("node", names)
        write_own(key, "")
        self._make("req", "-new", *_KEY, "-config", settings, "-keyout", str(key), "-out", str(request))
        signed_by = ("-CA", str(self.certificate), "-CAkey", str(self.key), "-CAcreateserial", "-days", _DAYS)
        extensions = ("-extfile", settings, "-extensions", "node")
        self._make("x509", "-req", "-in", str(request), *signed_by, *extensions, "-out", str(certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(self.certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def make(self) -> None:
        """Make the files.

        Raises RequirementError for an openssl that does not.
        """
        settings = self._settings("authority", _NAMES)
        write_own(self.key, "")  # openssl keeps the mode of a file that is there
        extensions = ("-config", settings, "-extensions", "authority")
        files = ("-keyout", str(self.key), "-out", str(self.certificate))
        self._make("req", "-x509", *_KEY, *extensions, *files, "-days", _DAYS)
        write_own(self.tokens, f"{self.token},admin,admin,system:masters\n")

    def _settings(self, name: str, names: str) -> str:
        file = self.folder / f"{name}.cnf"
        write_own(file, _REQUEST.format(names=names))
        return str(file)

    def _make(self, *words: str) -> None:
        _run(self.openssl, words)


def make_identity(folder: Path, openssl: str) -> ControlPlaneIdentity:
    """Make key, certificate and token in a folder.

    Raises RequirementError for an openssl that does not.
    """
    identity = ControlPlaneIdentity(folder, secrets.token_hex(16), openssl)
    identity.make()
    return identity


def _run(openssl: str, words: Sequence[str]) -> None:
    argv = [openssl, *words]
    try:
        subprocess.run(argv, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        output = " ".join(error.stderr.split()) or f"exit code {error.returncode}"
        raise RequirementError(
            f"{openssl}: no certificate could be generated; OpenSSL 1.1.1 or later is required: {output}"
        ) from error
    except OSError as error:
        raise RequirementError(f"{openssl}: cannot be started: {error.strerror}") from error
