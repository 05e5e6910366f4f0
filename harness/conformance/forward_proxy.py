"""The HTTP proxy between this machine and a chassis, as the environment or the system names it."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from mews.harness.errors import BadInputError


def proxy_of(parts: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment (``http_proxy``, ``https_proxy``, ``all_proxy``, ``no_proxy``) or the
    system names for a URL.

    None where there is none, and for this machine itself, as curl has it. Raises BadInputError for a proxy that is no
    HTTP proxy.
    """
    host = parts.hostname or ""
    found = getproxies().get(parts.scheme) or getproxies().get("all")
    if not found or host in ("localhost", "127.0.0.1", "::1") or proxy_bypass(host):
        return None
    proxy = urlsplit(found if "://" in found else f"http://{found}")
    try:
        usable = proxy.scheme == "http" and bool(proxy.hostname) and proxy.port != 0
    except ValueError:
        usable = False
    if not usable:
        shown = f"{proxy.scheme}://{proxy.netloc.rpartition('@')[2]}"
        raise BadInputError(f"{parts.scheme}_proxy: {shown}: must be an HTTP proxy, http://HOST[:PORT]")
    return proxy


def proxy_text(proxy: SplitResult) -> str:
    """``HOST:PORT`` of a proxy, without its credentials."""
    return f"{proxy.hostname}:{proxy.port or 80}"
