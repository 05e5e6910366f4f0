"""Gives every namespace its ServiceAccount ``default``."""

from __future__ import annotations

from mews.kube.api.errors import AlreadyExistsError, ApiError
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import NAMESPACES, SERVICE_ACCOUNTS
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.pod_control import is_terminating_namespace
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop

_NAME = "default"


class ServiceAccounts:
    """Component: one for a cluster."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._kube = context.kube
        self._namespaces = informers.of(NAMESPACES)
        self._accounts = informers.of(SERVICE_ACCOUNTS)
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._namespaces.synced()
        await self._accounts.synced()
        self._namespaces.on_change(self._namespace_changed)
        self._accounts.on_change(self._account_changed)
        await self._loop.run()

    def _namespace_changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._loop.add(name_of(new))

    def _account_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None and name_of(old) == _NAME:
            self._loop.add(namespace_of(old))

    async def _sync(self, key: str) -> None:
        namespace = self._namespaces.at(key)
        if namespace is None or (namespace.get("status") or {}).get("phase") != "Active":
            return
        if self._accounts.get(_NAME, key) is not None:
            return
        try:
            await self._kube.create(
                SERVICE_ACCOUNTS, {"metadata": {"name": _NAME}}, namespace=key, field_manager=MANAGER
            )
        except AlreadyExistsError:
            return
        except ApiError as error:
            if not is_terminating_namespace(error):
                raise
