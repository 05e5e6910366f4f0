"""Gives every namespace the ConfigMap ``kube-root-ca.crt``: whom clients in the cluster trust."""

from __future__ import annotations

from mews.kube.api.errors import AlreadyExistsError, ApiError
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import CONFIGMAPS, NAMESPACES
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.pod_control import is_terminating_namespace
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop

_NAME = "kube-root-ca.crt"
_KEY = "ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class RootCaPublisher:
    """Component: one for a cluster. ``authority``: the certificates, in PEM."""

    def __init__(self, context: Context, *, informers: Informers, authority: str) -> None:
        self._kube = context.kube
        self._data = {_KEY: authority}
        self._namespaces = informers.of(NAMESPACES)
        self._config_maps = informers.of(CONFIGMAPS)
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._namespaces.synced()
        await self._config_maps.synced()
        self._namespaces.on_change(self._namespace_changed)
        self._config_maps.on_change(self._config_map_changed)
        await self._loop.run()

    def _namespace_changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._loop.add(name_of(new))

    def _config_map_changed(self, old: Object | None, new: Object | None) -> None:
        changed = new or old
        if changed is not None and name_of(changed) == _NAME:
            self._loop.add(namespace_of(changed))

    async def _sync(self, key: str) -> None:
        namespace = self._namespaces.at(key)
        if namespace is None or (namespace.get("status") or {}).get("phase") != "Active":
            return
        known = self._config_maps.get(_NAME, key)
        annotations = {"kubernetes.io/description": _DESCRIPTION}
        if known is None:
            body: Object = {"metadata": {"name": _NAME, "annotations": annotations}, "data": self._data}
            try:
                await self._kube.create(CONFIGMAPS, body, namespace=key, field_manager=MANAGER)
            except AlreadyExistsError:
                return
            except ApiError as error:
                if not is_terminating_namespace(error):
                    raise
        elif known.get("data") != self._data or known.get("binaryData"):
            metadata = dict(known["metadata"])
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
            changed = {**known, "metadata": metadata, "data": self._data}
            changed.pop("binaryData", None)
            await self._kube.replace(CONFIGMAPS, changed, namespace=key, field_manager=MANAGER)
