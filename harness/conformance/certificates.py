"""The certificates of a run as they are given: whom to trust, and what to show where a server asks for one."""

from __future__ import annotations

import ssl
from pathlib import Path

from msgspec import Struct

from mews.harness.conformance.client import ChassisTarget, tls_context
from mews.harness.errors import BadInputError


class TlsArguments(Struct, frozen=True):
    """``--ca FILE``, ``--insecure``, ``--cert FILE`` and ``--key FILE``."""

    ca: Path | None = None
    insecure: bool = False
    cert: Path | None = None
    key: Path | None = None

    def target(self, url: str, patience_s: float) -> ChassisTarget:
        """Return the chassis at a URL under these certificates."""
        ca, cert, key = (None if file is None else str(file) for file in (self.ca, self.cert, self.key))
        return ChassisTarget(url, ca, self.insecure, patience_s, cert, key)

    def context(self, url: str) -> ssl.SSLContext | None:
        """Return how connections to a URL are encrypted; None where they are not.

        Raises BadInputError.
        """
        self.check(url)
        return tls_context(self.target(url, 60.0)) if url.startswith("https:") else None

    def check(self, url: str) -> None:
        """Read each file once.

        Raises BadInputError.
        """
        if self.ca is not None and self.insecure:
            raise BadInputError(f"--ca {self.ca} --insecure: only one of the two")
        if self.ca is not None:
            try:
                ssl.create_default_context(cafile=str(self.ca))
            except OSError as error:
                why = error.strerror or error
                raise BadInputError(f"--ca {self.ca}: must be a PEM file of certificates: {why}") from error
        if self.cert is not None:
            _check_own(url, self.cert, self.key)
        elif self.key is not None:
            raise BadInputError(f"--key {self.key}: only with --cert FILE, the certificate whose key it is")


def _check_own(url: str, cert: Path, key: Path | None) -> None:
    given = f"--cert {cert}" if key is None else f"--cert {cert} --key {key}"
    if not url.startswith("https:"):
        raise BadInputError(f"{given}: {url} has no TLS: a certificate is shown to https:// only")
    for option, file in (("--cert", cert), ("--key", key)):
        if file is not None and not file.is_file():
            raise BadInputError(f"{option} {file}: no such file")
    try:
        # With an empty password, or OpenSSL would ask the terminal for that of an encrypted key.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, password="")
    except OSError as error:
        files = "a PEM file" if key is None else "PEM files"
        hint = "; --key FILE names the file of its key" if key is None else ""
        why = error.strerror or error
        raise BadInputError(
            f"{given}: must be {files} of a certificate and its unencrypted key: {why}{hint}"
        ) from error
