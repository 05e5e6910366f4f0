"""What is left of a failed run: its objects, events, journal and logs in one folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mews.harness.clusters.port import Cluster
from mews.harness.scenario.result import Result
from mews.kube.api.errors import ApiError, Unavailable
from mews.kube.api.objects import name_of, namespace_of
from mews.kube.api.resources import CONFIGMAPS, EVENTS, NODES, PODS

_RESOURCES = (NODES, PODS, CONFIGMAPS, EVENTS)


async def keep(cluster: Cluster, result: Result, folder: Path) -> Path:
    """Write all of it into a folder named after scenario and seed, and return that."""
    target = folder / f"{_safe(result.scenario)}-{result.seed}"
    target.mkdir(parents=True, exist_ok=True)
    (target / "report.txt").write_text(f"{result.verdict}: {result.reason}\n\n{result.report}\n", encoding="utf-8")
    (target / "result.json").write_text(_json(result.as_dict()), encoding="utf-8")
    (target / "journal.jsonl").write_text(cluster.journal.as_jsonl(), encoding="utf-8")
    (target / "records.jsonl").write_text(cluster.records.as_jsonl(), encoding="utf-8")
    (target / "table.json").write_text(_json(await cluster.hardware.table()), encoding="utf-8")
    for resource in _RESOURCES:
        try:
            items = (await cluster.kube.list(resource)).items
        except (ApiError, Unavailable) as error:
            (target / f"{resource.plural}.json").write_text(_json({"error": str(error)}), encoding="utf-8")
            continue
        (target / f"{resource.plural}.json").write_text(_json(items), encoding="utf-8")
        if resource is PODS:
            await _logs(cluster, items, target / "logs")
    return target


async def _logs(cluster: Cluster, pods: list[dict[str, Any]], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for pod in pods:
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            namespace, name, container = namespace_of(pod), name_of(pod), str(status.get("name"))
            try:
                text = b"".join([c async for c in cluster.kube.log(namespace, name, container=container)])
            except (ApiError, Unavailable) as error:
                text = f"no log: {error}\n".encode()
            (folder / f"{namespace}_{name}_{container}.log").write_bytes(text)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n"


def _safe(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "-" for char in name)
