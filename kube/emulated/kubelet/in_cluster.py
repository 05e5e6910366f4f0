"""What programs in a cluster find there (client-go rest.InClusterConfig): the API's address in their variables, and
their service account's token, authority and namespace in /var/run/secrets/kubernetes.io/serviceaccount."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, name_of, namespace_of, uid_of
from mews.kube.api.resources import SERVICE_ACCOUNTS, Resource
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.runtime import Launch

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
_LIFETIME_S = 3607
_USED = 0.8
_RENEW_S = _USED * _LIFETIME_S
"""As the real kubelet: what an hour's token is asked for with, and when it is replaced (token_manager.go)."""
_LOOK_S = 30.0
_ACCOUNT_S = 5.0
"""So long a pod waits for its service account, which a controller makes."""


class ApiAccess(Protocol):
    """The API as processes of this machine reach it."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    def authority(self) -> str | None:
        """Return it in PEM, whom its clients trust; None where it is served in plain HTTP."""
        ...

    def kube(self, actor: str) -> KubeApi:
        """Return a client that may make tokens."""
        ...


def service_variables(url: str) -> Mapping[str, str]:
    """Return where the API at that address is, under the names of the Service ``kubernetes`` (pkg/kubelet/envvars)."""
    parts = urlsplit(url)
    host, port = str(parts.hostname), str(parts.port)
    link = f"tcp://{host}:{port}"
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "KUBERNETES_SERVICE_PORT_HTTPS": port,
        "KUBERNETES_PORT": link,
        f"KUBERNETES_PORT_{port}_TCP": link,
        f"KUBERNETES_PORT_{port}_TCP_PROTO": "tcp",
        f"KUBERNETES_PORT_{port}_TCP_PORT": port,
        f"KUBERNETES_PORT_{port}_TCP_ADDR": host,
    }


def write_account(folder: Path, *, token: str, authority: str, namespace: str) -> None:
    """Write a service account's folder, as kubelets mount it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, text in (("token", token), ("ca.crt", authority), ("namespace", namespace)):
        _write(folder / name, text)


class _Account(Struct):
    pod: Object
    folder: Path
    renew_at: float


class _Token(Struct, frozen=True):
    text: str
    renew_at: float


class InCluster:
    """Makes it for the pods of one cluster. An API in plain HTTP is not for programs in clusters: they speak TLS."""

    def __init__(self, api: ApiAccess, root: Path) -> None:
        self._api = api
        self._root = root
        self._kube: KubeApi | None = None
        self._accounts: dict[str, _Account] = {}
        self._tokens: dict[tuple[str, str, int], _Token] = {}
        self._renewing: asyncio.Task[None] | None = None

    def variables(self) -> Mapping[str, str]:
        """Return where the API is, under the names of the Service ``kubernetes`` (pkg/kubelet/envvars)."""
        if self._api.authority() is None:
            return {}
        return service_variables(self._api.url)

    async def account(self, launch: Launch) -> Path | None:
        """Return the folder with the pod's token, ``ca.crt`` and ``namespace``; None for a pod that wants none, or
        whose account is not there.

        Raises StartError where the API refuses a token.
        """
        pod, authority = launch.pod, self._api.authority()
        if authority is None or pod["spec"].get("automountServiceAccountToken") is False:
            return None
        known = self._accounts.get(uid_of(pod))
        if known is not None:
            return known.folder
        try:
            token = await self._first_token(pod)
        except (ApiError, UnavailableError) as error:
            text = f'MountVolume.SetUp failed for volume "kube-api-access" : failed to fetch token: {error}'
            raise StartError("CreateContainerConfigError", text) from error
        if token is None:
            return None
        folder = self._root / uid_of(pod)
        write_account(folder, token=token, authority=authority, namespace=namespace_of(pod))
        self._accounts[uid_of(pod)] = _Account(pod, folder, asyncio.get_running_loop().time() + _RENEW_S)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
        return folder

    async def _first_token(self, pod: Object) -> str | None:
        loop = asyncio.get_running_loop()
        until = loop.time() + _ACCOUNT_S
        while True:
            try:
                account = await self._client().get(SERVICE_ACCOUNTS, _account_of(pod), namespace=namespace_of(pod))
                if account.get("automountServiceAccountToken") is False and not _asks(pod):
                    return None
                return await self._token(pod)
            except NotFoundError:
                if loop.time() > until:
                    return None
            await rest(0.2)

    async def token(self, pod: Object, audience: str, lifetime_s: int) -> str:
        """Return a pod's token for that audience ("": the API), the same one until most of its life is over
        (token_manager.go).

        Raises ApiError, UnavailableError.
        """
        now, key = asyncio.get_running_loop().time(), (uid_of(pod), audience, lifetime_s)
        self._tokens = {each: token for each, token in self._tokens.items() if now < token.renew_at}
        if key not in self._tokens:
            text = await self._token(pod, lifetime_s, (audience,) if audience else ())
            self._tokens[key] = _Token(text, now + _USED * lifetime_s)
        return self._tokens[key].text

    def kube(self) -> KubeApi:
        """Return the API as a kubelet uses it."""
        return self._client()

    async def _token(self, pod: Object, lifetime_s: int = _LIFETIME_S, audiences: tuple[str, ...] = ()) -> str:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)}
        spec: dict[str, Any] = {"expirationSeconds": lifetime_s}
        if audiences:
            spec["audiences"] = list(audiences)
        if pod["spec"].get("serviceAccountName"):  # without that admission a token cannot be bound to the pod
            spec["boundObjectRef"] = bound
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        tokens = Resource("", "v1", f"serviceaccounts/{_account_of(pod)}/token", "TokenRequest")
        made: Mapping[str, Any] = await self._client().create(tokens, body, namespace=namespace_of(pod))
        return str(made["status"]["token"])

    def _client(self) -> KubeApi:
        if self._kube is None:
            self._kube = self._api.kube("kubelet")
        return self._kube

    async def _renew(self) -> None:
        while True:
            await rest(_LOOK_S)
            now = asyncio.get_running_loop().time()
            for uid, account in list(self._accounts.items()):
                if now < account.renew_at:
                    continue
                try:
                    _write(account.folder / "token", await self._token(account.pod))
                    account.renew_at = now + _RENEW_S
                except NotFoundError:
                    del self._accounts[uid]
                except (ApiError, UnavailableError):
                    continue  # the old one is good for some minutes more

    async def close(self) -> None:
        """Renew no more."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)


def _account_of(pod: Object) -> str:
    return str(pod["spec"].get("serviceAccountName") or "default")


def _asks(pod: Object) -> bool:
    return pod["spec"].get("automountServiceAccountToken") is True


def _write(path: Path, text: str) -> None:
    """In one step, as readers open it at any time."""
    part = path.with_name(f".{path.name}")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
