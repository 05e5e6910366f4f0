"""The API server as a pod reaches it: address, authority and token of its service account, as kubelets mount them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path

from mews.kube.client.http import HttpKube

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_in_cluster() -> bool:
    """Return whether this process runs in a pod with a service account."""
    return "KUBERNETES_SERVICE_HOST" in os.environ and (FOLDER / "token").exists()


def in_cluster_kube(user_agent: str) -> HttpKube:
    """Return a client with the pod's service account; its token is read again as it is renewed."""
    url, token, trusted = in_cluster_access()
    return HttpKube(url, token=token, ssl=trusted, user_agent=user_agent)


def in_cluster_access() -> tuple[str, Callable[[], str], ssl.SSLContext]:
    """URL, the token as it is now, whom to trust."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    shown = f"[{host}]" if ":" in host else host
    trusted = ssl.create_default_context(cafile=str(FOLDER / "ca.crt"))
    token = FOLDER / "token"

    def current() -> str:
        return token.read_text(encoding="ascii").strip()

    return f"https://{shown}:{port}", current, trusted
