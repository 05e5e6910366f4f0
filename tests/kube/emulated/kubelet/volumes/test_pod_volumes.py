"""Volumes of pods are folders with what the API says, and stay current."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.errors import NotFoundError
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.volumes.host_paths import NodeHostPaths
from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes


class Api:
    """Objects by kind and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.tokens: list[tuple[str, int]] = []

    async def get(self, resource: Any, name: str, *, namespace: str | None = None) -> dict[str, Any]:
        if (resource.kind, name) not in self.objects:
            raise NotFoundError(f'{resource.plural} "{name}" not found')
        return self.objects[resource.kind, name]

    async def token(self, pod: dict[str, Any], audience: str, lifetime_s: int) -> str:
        self.tokens.append((audience, lifetime_s))
        return f"token for {audience or 'the API'}"

    def config_map(self, **data: str) -> None:
        self.objects["ConfigMap", "cm"] = {"metadata": {"name": "cm"}, "data": data}


def pod(volume: dict[str, Any], *, mount: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    mounts = [{"name": "v", "mountPath": "/v", **(mount or {})}]
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"a": "1"}},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "image": "x", "volumeMounts": mounts}],
            "volumes": [{"name": "v", **volume}],
            **spec,
        },
    }


def volumes_of(folder: Path, api: Api, speed: float = 1.0, provisioned: Path | None = None) -> PodVolumes:
    paths = NodeHostPaths(lambda node: folder / node, lambda host: None)
    kube: Any = lambda: api  # noqa: E731
    return PodVolumes(
        kube, folder / "pods", paths, tokens=api, speed=speed, provisioned=provisioned, memory=lambda: folder / "memory"
    )


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def found(folder: Path, api: Api, of: dict[str, Any], env: dict[str, str] | None = None) -> tuple[Path, bool]:
    """Where the one volume is, and whether it is mounted read-only."""

    async def main() -> tuple[Path, bool]:
        volumes = volumes_of(folder, api)
        [mount] = await volumes.mounts(of, "main", env or {})
        await volumes.close()
        assert mount.container_path == "/v"
        return Path(mount.host_path), mount.read_only

    return asyncio.run(main())


def test_a_config_map_is_its_keys_or_the_items_asked_for(tmp_path: Path) -> None:
    api = Api()
    api.config_map(a="1", b="2")
    api.objects["ConfigMap", "cm"]["binaryData"] = {"c": base64.b64encode(b"\xff").decode()}
    whole, read_only = found(tmp_path / "1", api, pod({"configMap": {"name": "cm"}}))
    assert {path.name: path.read_bytes() for path in whole.iterdir() if path.is_file()} == {
        "a": b"1",
        "b": b"2",
        "c": b"\xff",
    }
    assert read_only
    items = [{"key": "a", "path": "x/y", "mode": 0o600}]
    some, _ = found(tmp_path / "2", api, pod({"configMap": {"name": "cm", "items": items}}))
    assert (some / "x" / "y").read_text() == "1"
    assert (some / "x" / "y").stat().st_mode & 0o777 == 0o600
    assert not (some / "b").exists()


def test_a_secret_is_decoded_and_has_its_mode(tmp_path: Path) -> None:
    api = Api()
    api.objects["Secret", "s"] = {"data": {"k": base64.b64encode(b"hush").decode()}}
    folder, _ = found(tmp_path, api, pod({"secret": {"secretName": "s", "defaultMode": 0o400}}))
    assert (folder / "k").read_bytes() == b"hush"
    assert (folder / "k").stat().st_mode & 0o777 == 0o400


def test_a_mode_of_zero_is_one(tmp_path: Path) -> None:
    api = Api()
    api.config_map(a="1")
    folder, _ = found(tmp_path, api, pod({"configMap": {"name": "cm", "defaultMode": 0}}))
    assert (folder / "a").stat().st_mode & 0o777 == 0


def test_the_group_of_the_pod_reads_files_and_writes_empty_folders(tmp_path: Path) -> None:
    api, group = Api(), {"securityContext": {"fsGroup": 2000}}
    api.config_map(a="1")
    folder, _ = found(tmp_path / "1", api, pod({"configMap": {"name": "cm", "defaultMode": 0o400}}, **group))
    assert (folder / "a").stat().st_mode & 0o777 == 0o440
    empty, read_only = found(tmp_path / "2", api, pod({"emptyDir": {}}, **group))
    assert empty.stat().st_mode & 0o7777 == 0o2777
    assert not read_only


def test_a_projected_volume_has_all_its_sources(tmp_path: Path) -> None:
    api = Api()
    api.config_map(a="1")
    sources = [
        {"configMap": {"name": "cm"}},
        {"secret": {"name": "none", "optional": True}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"serviceAccountToken": {"path": "t", "audience": "vault", "expirationSeconds": 700}},
    ]
    folder, read_only = found(tmp_path, api, pod({"projected": {"sources": sources, "defaultMode": 0o444}}))
    texts = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    assert texts == {"a": "1", "labels": 'a="1"', "t": "token for vault"}
    assert api.tokens == [("vault", 700)]
    assert (folder / "a").stat().st_mode & 0o777 == 0o444
    assert read_only


def test_sub_paths_are_filled_in_and_follow_no_update(tmp_path: Path) -> None:
    api = Api()
    api.config_map(a="1")
    folder, _ = found(tmp_path / "1", api, pod({"emptyDir": {}}, mount={"subPathExpr": "x/$(POD)"}), {"POD": "p-7"})
    assert folder == tmp_path / "1" / "pods" / "u" / "volumes" / "v" / "x" / "p-7"
    file, read_only = found(tmp_path / "2", api, pod({"configMap": {"name": "cm"}}, mount={"subPath": "a"}))
    assert file.read_text() == "1"
    assert "..data" not in file.parts
    assert read_only


def test_a_claim_that_is_read_only_is_mounted_so(tmp_path: Path) -> None:
    api = Api()
    api.objects["PersistentVolumeClaim", "c"] = {"spec": {"volumeName": "pv"}}
    api.objects["PersistentVolume", "pv"] = {"spec": {"hostPath": {"path": str(tmp_path / "made" / "pv")}}}

    async def main() -> None:
        volumes = volumes_of(tmp_path, api, provisioned=tmp_path / "made")
        for read_only in (False, True):
            claim = {"persistentVolumeClaim": {"claimName": "c", "readOnly": read_only}}
            [mount] = await volumes.mounts(pod(claim), "main")
            assert (mount.host_path, mount.read_only) == (str(tmp_path / "made" / "pv"), read_only)

    run(main)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    api = Api()
    api.config_map(a="1")
    cases = {
        'MountVolume.SetUp failed for volume "v" : configmaps "x" not found': {"configMap": {"name": "x"}},
        "references non-existent configmap key: k": {"configMap": {"name": "cm", "items": [{"key": "k", "path": "k"}]}},
        'volume "v": nfs: containers of emulated nodes have no such volumes': {"nfs": {"server": "s", "path": "/"}},
    }
    for text, volume in cases.items():
        with pytest.raises(StartError) as caught:
            found(tmp_path, api, pod(volume))
        assert caught.value.message.startswith(text)


def test_changes_arrive_within_the_kubelets_period(tmp_path: Path) -> None:
    """At a speed at which a minute is a moment."""

    async def main() -> None:
        api, of = Api(), pod({"configMap": {"name": "cm"}})
        api.config_map(a="1")
        api.objects["Pod", "p"] = of
        volumes = volumes_of(tmp_path, api, speed=3000.0)
        [mount] = await volumes.mounts(of, "main")
        api.config_map(a="2", b="3")
        async with asyncio.timeout(10):
            while (Path(mount.host_path) / "a").read_text() != "2":  # noqa: ASYNC110 - nobody says when a file changed
                await asyncio.sleep(0.01)
        assert (Path(mount.host_path) / "b").read_text() == "3"
        del api.objects["ConfigMap", "cm"]
        await volumes.refresh(of)
        assert (Path(mount.host_path) / "a").read_text() == "2"  # what is gone is kept
        await volumes.close()

    run(main)


def test_the_downward_api_follows_the_pod(tmp_path: Path) -> None:
    async def main() -> None:
        api, items = Api(), [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels['a']"}}]
        of = pod({"downwardAPI": {"items": items}})
        volumes = volumes_of(tmp_path, api)
        [mount] = await volumes.mounts(of, "main")
        assert (Path(mount.host_path) / "l").read_text() == "1"
        of["metadata"]["labels"] = {"a": "2"}
        await volumes.refresh(of)
        assert (Path(mount.host_path) / "l").read_text() == "2"
        await volumes.close()

    run(main)


def test_what_is_written_is_counted_and_goes_with_the_pod(tmp_path: Path) -> None:
    async def main() -> None:
        of = pod({"emptyDir": {"sizeLimit": "1Mi"}})
        volumes = volumes_of(tmp_path, Api())
        assert await volumes.usage(of) == {}
        [mount] = await volumes.mounts(of, "main")
        assert await volumes.usage(of) == {"v": 0}
        (Path(mount.host_path) / "f").write_bytes(b"x" * 300_000)
        assert 300_000 <= (await volumes.usage(of))["v"] < 400_000
        volumes.remove("u")
        await volumes.close()
        assert await volumes.usage(of) == {}

    run(main)


def test_an_empty_folder_in_memory_is_one_there(tmp_path: Path) -> None:
    async def main() -> None:
        of = pod({"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
        volumes = volumes_of(tmp_path, Api())
        [mount] = await volumes.mounts(of, "main")
        (Path(mount.host_path) / "x").write_bytes(b"x" * 5000)
        assert (tmp_path / "memory" / "u" / "v" / "x").exists()
        assert await volumes.mounts(of, "main") == [mount]
        assert (await volumes.usage(of))["v"] >= 5000
        volumes.remove("u")
        await volumes.close()
        assert not list((tmp_path / "memory").iterdir())
        assert not (tmp_path / "pods" / "u" / "volumes").exists()

    run(main)
