"""The one key, certificate and token of a control plane that lives for a few minutes on loopback."""

from __future__ import annotations

import secrets
import ssl
import subprocess
from pathlib import Path

from msgspec import Struct

from mews.harness.errors import RequirementError
from mews.own_files import write_own

_NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc,DNS:metrics-server.kube-system.svc"
_USES = "keyUsage=critical,digitalSignature,keyCertSign"


class ControlPlaneIdentity(Struct, frozen=True):
    """A self-signed certificate that etcd, the API server and the kubelets show to each other and to clients, and the
    administrator's bearer token. Files are readable by their owner alone."""

    folder: Path
    token: str

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

    def node_context(self) -> ssl.SSLContext:
        """Serves everybody, and knows those who show this certificate."""
        context = self.kubelet_context()
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


def make_identity(folder: Path, openssl: str) -> ControlPlaneIdentity:
    """Make key, certificate and token in a folder.

    Raises RequirementError for an openssl that does not.
    """
    identity = ControlPlaneIdentity(folder, secrets.token_hex(16))
    write_own(identity.key, "")  # openssl keeps the mode of a file that is there
    argv = [
        *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", str(identity.key), "-out", str(identity.certificate), "-days", "365", "-subj", "/CN=mews"),
        *("-addext", _NAMES, "-addext", _USES),
    ]
    try:
        subprocess.run(argv, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        output = " ".join(error.stderr.split()) or f"exit code {error.returncode}"
        raise RequirementError(
            f"{openssl}: no certificate could be generated; OpenSSL 1.1.1 or later is required: {output}"
        ) from error
    except OSError as error:
        raise RequirementError(f"{openssl}: cannot be started: {error.strerror}") from error
    write_own(identity.tokens, f"{identity.token},admin,admin,system:masters\n")
    return identity
