"""Where a cluster is, and what a request to it carries."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from mews.kube.client.kubeconfig.files import KubeconfigEntry

if TYPE_CHECKING:
    from mews.kube.client.connection import Tokens


class KubeconfigAccess(Struct, frozen=True):
    """How to reach a cluster, and as whom."""

    base_url: str
    tokens: Tokens | None
    ssl_context: ssl.SSLContext | None
    headers: Mapping[str, str]


def server_of(cluster: KubeconfigEntry) -> str:
    """Return the URL of a cluster's API server. Raises KubeconfigError."""
    server = cluster.text("server")
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise cluster.refuse("server", f"{server!r}: must be a URL that begins with https:// or http://")
    if cluster.text("proxy-url"):
        raise cluster.refuse("proxy-url", "proxies are not supported: remove it, or forward a port to the API server")
    return server
