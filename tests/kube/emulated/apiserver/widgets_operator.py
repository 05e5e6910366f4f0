"""An operator as its users write them, for ``kopf run``: nothing in it knows whose API it talks to."""

from __future__ import annotations

from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = True
    settings.peering.lifetime = 10


@kopf.on.create("mews.test", "v1", "widgets")
def created(body: kopf.Body, spec: kopf.Spec, **_: Any) -> dict[str, Any]:
    kopf.info(body, reason="Greeted", message="welcome")
    return {"said": f"size {spec.get('size')}"}


@kopf.on.update("mews.test", "v1", "widgets", field="spec.size")
def resized(old: int, new: int, patch: kopf.Patch, **_: Any) -> None:
    patch.status["resized"] = f"{old}->{new}"


@kopf.timer("mews.test", "v1", "widgets", interval=0.2)
def ticked(status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    if status.get("ticks", 0) < 3:
        patch.status["ticks"] = status.get("ticks", 0) + 1


@kopf.on.delete("mews.test", "v1", "widgets")
def deleted(body: kopf.Body, **_: Any) -> None:
    kopf.info(body, reason="Dismissed", message="farewell")
