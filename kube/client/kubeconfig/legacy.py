"""Users with an auth provider (``gcp``, ``oidc``), which Kubernetes retired in 1.26: the official client knows them.

It is in the extra ``kubeconfig``. It writes renewed tokens back into the user's file, as kubectl did.
"""

from __future__ import annotations

import ssl
from typing import Any

from mews.kube.client.kubeconfig.endpoint import KubeconfigAccess, server_of
from mews.kube.client.kubeconfig.selection import SelectedContext
from mews.kube.client.kubeconfig.tls import tls_context


def legacy_access(path: str | None, found: SelectedContext) -> KubeconfigAccess:
    """Return the access of such a user.

    Raises KubeconfigError, and ModuleNotFoundError without that client.
    """
    from kubernetes import client, config
    from kubernetes.config import ConfigException

    load: Any = config.load_kube_config
    settings, url = client.Configuration(), server_of(found.cluster)
    try:
        load(path, context=found.name, client_configuration=settings)
    except (ConfigException, OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise found.user.refuse("auth-provider", " ".join(str(error).split())) from error
    if settings.refresh_api_key_hook is None and not settings.api_key:
        raise found.user.refuse("auth-provider", "the official Kubernetes client finds no token in it")

    def current() -> str | None:
        for name in ("authorization", "BearerToken"):
            value = settings.get_api_key_with_prefix(name)
            if value:
                return str(value).removeprefix("Bearer ")
        return None

    context: ssl.SSLContext | None = tls_context(found.cluster) if url.startswith("https://") else None
    return KubeconfigAccess(url, current, context, {})
