"""Programs find their cluster's API as in any pod."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.errors import NotFoundError
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.in_cluster import FOLDER, InCluster
from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking
from mews.kube.emulated.kubelet.process import ACCOUNT_FOLDER, ProcessRuntime
from mews.kube.emulated.kubelet.runtime import Launch

pytestmark = pytest.mark.wall


class _Kube:
    def __init__(self, account: dict[str, Any] | None) -> None:
        self._account = account
        self.asked: list[dict[str, Any]] = []

    async def get(self, resource: object, name: str, *, namespace: str) -> dict[str, Any]:
        if self._account is None:
            raise NotFoundError("no account")
        return self._account

    async def create(self, resource: Any, body: dict[str, Any], *, namespace: str) -> dict[str, Any]:
        self.asked.append(body["spec"])
        return {"status": {"token": f"token of {resource.plural} in {namespace}"}}


class _Api:
    def __init__(self, kube: _Kube, authority: str | None = "PEM") -> None:
        self.url = "https://127.0.0.1:4321"
        self._kube, self._authority = kube, authority

    def authority(self) -> str | None:
        return self._authority

    def kube(self, actor: str) -> Any:
        return self._kube


def launch(command: str, **spec: Any) -> Launch:
    container = {"name": "main", "image": "busybox"}
    body = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"containers": [container], **spec}}
    image = load_images().find("busybox")
    assert image is not None
    return Launch(body, "main", 0, image, ("sh", "-c", command), (), {})


def printed(folder: Path, api: _Api, start: Launch, command: list[str] | None = None) -> tuple[str, str]:
    """What the container printed, and what a command in it did meanwhile."""

    async def main() -> tuple[str, str]:
        runtime = ProcessRuntime(folder / "pods", in_cluster=InCluster(api, folder / "accounts"))
        try:
            process = await runtime.start(start)
            done = (await process.exec(command)).stdout if command else b""
            await process.wait()
            return process.log.read().decode(), done.decode()
        finally:
            await runtime.close()

    return asyncio.run(main())


def test_the_address_and_the_account_are_where_programs_look(tmp_path: Path) -> None:
    if namespaces_lacking():
        pytest.skip(f"no mount namespaces here: {namespaces_lacking()}")
    kube = _Kube({})
    look = f"cat {FOLDER}/token {FOLDER}/namespace {FOLDER}/ca.crt; echo :$KUBERNETES_SERVICE_HOST"
    look += ":$KUBERNETES_SERVICE_PORT; sleep 1"
    text, inside = printed(tmp_path, _Api(kube), launch(look, serviceAccountName="bob"), ["cat", f"{FOLDER}/namespace"])
    assert text == "token of serviceaccounts/bob/token in nsnsPEM:127.0.0.1:4321\n"
    assert inside == "ns"
    assert kube.asked == [
        {
            "expirationSeconds": 3607,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"},
        }
    ]
    assert not Path(FOLDER, "token").exists()  # on the machine itself nothing changed


def test_the_folder_is_named_too_for_where_nothing_can_be_mounted(tmp_path: Path) -> None:
    text, _ = printed(tmp_path, _Api(_Kube({})), launch(f"cat ${ACCOUNT_FOLDER}/namespace"))
    assert text == "ns"


@pytest.mark.parametrize(
    ("account", "spec", "authority"),
    [
        ({}, {"automountServiceAccountToken": False}, "PEM"),
        ({"automountServiceAccountToken": False}, {}, "PEM"),
        ({}, {}, None),
    ],
)
def test_who_wants_no_account_gets_none(
    tmp_path: Path, account: dict[str, Any], spec: dict[str, Any], authority: str | None
) -> None:
    text, _ = printed(
        tmp_path, _Api(_Kube(account), authority), launch(f"echo [${{{ACCOUNT_FOLDER}-}}]; ls {FOLDER}", **spec)
    )
    assert text.startswith("[]") and "No such file" in text


def test_a_program_that_is_not_there_is_refused_as_ever(tmp_path: Path) -> None:
    start = launch("true")
    missing = Launch(start.pod, "main", 0, start.image, ("no-such-program",), (), {})
    with pytest.raises(StartError, match="No such file or directory"):
        printed(tmp_path, _Api(_Kube({})), missing)


def test_a_token_is_asked_for_once_for_each_audience(tmp_path: Path) -> None:
    async def main() -> None:
        kube, pod = _Kube({}), launch("true", serviceAccountName="bob").pod
        access = InCluster(_Api(kube), tmp_path)
        for audience in ("vault", "vault", ""):
            assert await access.token(pod, audience, 600) == "token of serviceaccounts/bob/token in ns"
        bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}}
        short = {"expirationSeconds": 600, **bound}
        assert kube.asked == [{**short, "audiences": ["vault"]}, short]

    asyncio.run(main())
