"""What servers behind the API server need to know whom it speaks for: ConfigMap extension-apiserver-authentication.

Source: pkg/controlplane/controller/clusterauthenticationtrust; the flags are kubeadm's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from mews.certificates import FRONT_PROXY, Certificates
from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS
from mews.kube.emulated.core.objects import update
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import AUTHENTICATED, MASTERS, User

_NAMESPACE, _NAME = "kube-system", "extension-apiserver-authentication"
_SERVER = WriteRequest(User("system:apiserver", (MASTERS, AUTHENTICATED)), "kube-apiserver")


def trust(authority: str, front: Certificates | None) -> dict[str, str]:
    """Return the ConfigMap's data; nothing where the API server has no certificates."""
    data = {"client-ca-file": authority} if authority else {}
    if front is None:
        return data
    return {
        **data,
        "requestheader-allowed-names": json.dumps([FRONT_PROXY]),
        "requestheader-client-ca-file": front.authority.read_text("ascii"),
        "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
        "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
        "requestheader-username-headers": json.dumps(["X-Remote-User"]),
    }


def keep_trust(store: Store, authority: str, front: Certificates | None) -> Callable[[], None]:
    """Write it, and again whenever somebody else has changed or deleted it. Call the result to stop."""
    data, kind = trust(authority, front), store.kinds.of(CONFIGMAPS)

    def put() -> None:
        now = store.find(kind, _NAMESPACE, _NAME)
        if now is None:
            create(store, kind, _NAMESPACE, {"metadata": {"name": _NAME}, "data": data}, _SERVER)
        elif any((now.get("data") or {}).get(key) != value for key, value in data.items()):
            whole = {**now, "data": {**(now.get("data") or {}), **data}}
            update.replace(store, kind, _NAMESPACE, _NAME, whole, request=_SERVER)

    def on_commit(changed: Kind, old: Object | None, new: Object | None) -> None:
        metadata = (new or old or {})["metadata"]
        if changed.resource == CONFIGMAPS and (metadata["namespace"], metadata["name"]) == (_NAMESPACE, _NAME):
            asyncio.get_running_loop().call_soon(put)

    if not data:
        return lambda: None
    put()
    return store.listen(on_commit)
