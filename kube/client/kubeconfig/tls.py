"""The TLS context of a kubeconfig's cluster and user.

Certificates are judged as kubectl judges them: Python's own default context adds VERIFY_X509_STRICT from 3.13 on, which
refuses the authorities of many clusters because they lack a key identifier.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path

from mews.kube.client.kubeconfig.files import KubeconfigEntry
from mews.own_files import write_own


class NamedTlsContext(ssl.SSLContext):
    """Asks the server for one name, whatever the URL says (``tls-server-name``); "" leaves the URL's."""

    server_name = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Return it as asyncio calls it."""
        return super().wrap_bio(incoming, outgoing, server_side, self.server_name or server_hostname, session)


def tls_context(cluster: KubeconfigEntry) -> NamedTlsContext:
    """Return how the cluster's server is checked.

    Raises KubeconfigError for certificates that cannot be read.
    """
    context = NamedTlsContext(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = cluster.text("tls-server-name")
    trusted = _authority(cluster)
    if cluster.flag("insecure-skip-tls-verify"):
        if trusted:
            raise cluster.refuse("insecure-skip-tls-verify", "cannot be combined with a certificate authority")
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif trusted:
        key, text = trusted
        try:
            context.load_verify_locations(cadata=text)
        except (ssl.SSLError, ValueError):
            raise cluster.refuse(key, "must be certificates in PEM") from None
    else:
        context.load_default_certs()
    return context


def _authority(cluster: KubeconfigEntry) -> tuple[str, str] | None:
    """Return the key that has the authority's certificates, and they as PEM."""
    found = pem(cluster, "certificate-authority")
    if found is None:
        return None
    key, content = found
    try:
        return key, content.decode("ascii")
    except UnicodeDecodeError:
        raise cluster.refuse(key, "must be certificates in PEM") from None


def pem(entry: KubeconfigEntry, key: str) -> tuple[str, bytes] | None:
    """Return what a file or its ``-data`` has, and under which of the two keys; None without either.

    Raises KubeconfigError for both at a time, as kubectl does, and for what cannot be read.
    """
    data, path = entry.text(f"{key}-data"), entry.path(key)
    if data and path is not None:
        raise entry.refuse(key, f"cannot be combined with {key}-data")
    if path is not None:
        try:
            return key, path.read_bytes()
        except OSError as error:
            raise entry.refuse(key, f"{path}: cannot be read: {error.strerror}") from None
    try:
        return (f"{key}-data", base64.b64decode("".join(data.split()), validate=True)) if data else None
    except ValueError:  # binascii's error is one, too
        raise entry.refuse(f"{key}-data", "must be base64") from None


def load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Show that certificate on every connection from now on.

    Raises ssl.SSLError for what is no pair of certificate and unencrypted key.
    """
    with tempfile.TemporaryDirectory(prefix="mews-tls-") as folder:  # the library reads files alone
        both = Path(folder) / "client.pem"
        write_own(both, certificate + b"\n" + key)
        context.load_cert_chain(both, password=lambda: "")
