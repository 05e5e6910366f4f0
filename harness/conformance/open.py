"""Opens a chassis: its address, its credentials, its face."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.client import ChassisTarget, Client
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.restore import RestorePlan, limits_of
from mews.harness.errors import BadInputError, unreadable

USER, PASSWORD = "MEWS_REDFISH_USER", "MEWS_REDFISH_PASSWORD"


def check_url(url: str) -> str:
    """Return the URL without a slash at its end.

    Raises BadInputError, also where it holds credentials.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BadInputError(f"{url}: must be http://HOST[:PORT] or https://HOST[:PORT]: {error}") from error
    try:
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        port_is_fine = False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine or parts.query:
        raise BadInputError(f"{url}: must be http://HOST[:PORT] or https://HOST[:PORT]")
    if parts.username is not None or parts.password is not None:
        host = parts.netloc.rpartition("@")[2]
        raise BadInputError(f"{parts.scheme}://***@{host}: credentials come from {USER} and {PASSWORD}, or from a file")
    return url.rstrip("/")


def credentials_of(file: Path | None) -> tuple[str, str] | None:
    """User and password of a file (``user:password`` or two lines), else of the environment; None where neither is.

    Raises BadInputError.
    """
    if file is None:
        password = os.environ.get(PASSWORD)
        return None if password is None else (os.environ.get(USER) or "admin", password)
    try:
        lines = file.read_text(encoding="utf-8").strip().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"--credentials {unreadable(file, error)}") from error
    parts = lines if len(lines) == 2 else lines[0].split(":", 1) if len(lines) == 1 else []
    user, password = parts if len(parts) == 2 else ("", "")
    if not user or not password:
        raise BadInputError(f"--credentials {file}: must be one line USER:PASSWORD, or two lines")
    return user, password


def client_for(address: ChassisTarget, credentials: tuple[str, str] | None) -> Client:
    """Return a client that lets no password into its log.

    Raises BadInputError for certificates that cannot be read.
    """
    try:
        client = Client(address)
    except OSError as error:
        named = f"--ca {address.ca}" if address.cert is None else f"--ca {address.ca} --cert {address.cert}"
        raise BadInputError(f"{named}: cannot be used: {error}") from error
    client.credentials = credentials
    if credentials is not None:
        client.keep_secret(credentials[1])
    return client


def bench_for(plan: RestorePlan, credentials: tuple[str, str] | None) -> ClauseContext:
    """Return a bench to put back what a plan says.

    Raises BadInputError.
    """
    address = ChassisTarget(plan.url, plan.ca, plan.insecure, plan.patience_s, plan.cert, plan.key)
    client = client_for(address, credentials)
    judged = clauses_of(plan.dialect)
    return ClauseContext(client, judged.face(client), limits=limits_of(plan), home=judged.home)
