"""What is left of a failed run: its objects, events, journal and logs in one folder."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.result import Result
from mews.harness.systems import with_steps
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import name_of, namespace_of
from mews.kube.api.resources import CONFIGMAPS, EVENTS, NODES, PODS
from mews.kube.client.port import KubeApi
from mews.own_files import make_own_folder, write_own

RESULT = "result.json"
_RESOURCES = (NODES, PODS, CONFIGMAPS, EVENTS)


async def keep(cluster: Cluster, result: Result, folder: Path) -> Path:
    """Write all of it into a folder named after scenario and seed, and return that; see ``own_folder``."""
    target = own_folder(folder, result)
    texts = {
        "report.txt": f"{result.verdict}: {result.reason}\n\n{result.report}\n",
        "journal.jsonl": "".join(
            line.as_json() + "\n" for line in with_steps(cluster.journal.lines(), cluster.systems)
        ),
        "records.jsonl": cluster.records.as_jsonl(),
        **{f"evidence/{_safe(name)}.txt": text for name, text in result.evidence.items()},
        "table.json": _json(await _table(cluster)),
        **await objects_of(cluster.kube),
        **await cluster.artefacts(),
    }
    write_texts(target, texts)
    return target


def own_folder(folder: Path, result: Result) -> Path:
    """Make the run's folder with its ``result.json``. That of an earlier run of the same file is used again; where
    another file's scenario has the same name, the folder gets a number.

    Raises OSError.
    """
    name = f"{_safe(result.scenario)}-{result.seed}"
    make_own_folder(folder)
    for number in itertools.count(1):
        target = folder / (name if number == 1 else f"{name}-{number}")
        try:
            target.mkdir(mode=0o700)
        except FileExistsError:
            if _path_kept_in(target) != result.path:
                continue
        break
    write_own(target / RESULT, _json(result.as_dict()))
    return target


def _path_kept_in(folder: Path) -> str | None:
    """Return whose artefacts these are; None where that cannot be read."""
    try:
        return str(json.loads((folder / RESULT).read_text(encoding="utf-8"))["path"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Files by their path within a folder, which is made. Their owner alone may read them: logs and objects may hold
    tokens of users."""
    for name, text in texts.items():
        path = folder / name
        make_own_folder(path.parent)
        write_own(path, text)


async def _table(cluster: Cluster) -> dict[str, Any]:
    try:
        return await cluster.hardware.table()
    except RuntimeError as error:  # The chassis is down, as the scenario wanted it.
        return {"error": str(error)}


async def objects_of(kube: KubeApi) -> dict[str, str]:
    """File name -> nodes, pods, ConfigMaps and events as JSON, and the logs of the pods."""
    texts: dict[str, str] = {}
    for resource in _RESOURCES:
        try:
            items = (await kube.list(resource)).items
        except (ApiError, UnavailableError) as error:
            texts[f"{resource.plural}.json"] = _json({"error": str(error)})
            continue
        texts[f"{resource.plural}.json"] = _json(items)
        if resource is PODS:
            texts.update(await logs_of(kube, items))
    return texts


async def logs_of(kube: KubeApi, pods: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """File name -> the log of each container of these pods, or why there is none."""
    texts = {}
    for pod in pods:
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            namespace, name, container = namespace_of(pod), name_of(pod), str(status.get("name"))
            try:
                text = b"".join([c async for c in kube.log(namespace, name, container=container)])
            except (ApiError, UnavailableError) as error:
                text = f"no log: {error}\n".encode()
            texts[f"logs/{namespace}_{name}_{container}.log"] = text.decode("utf-8", "replace")
    return texts


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n"


def _safe(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "-" for char in name)
