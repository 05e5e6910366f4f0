"""Requests and resources of CoHDI's operator in a run's journal. Pure.

The lines of layer ``api`` that everybody may rely on, in addition to the lines of claims
(``mews.kube.dra.claim_lines``)::

    actor       event           fields
    request/r   request-state   state, size, node; state "" once it is gone
    resource/r  resource-state  state, node, gpu ("" until the fabric manager has named one); state "" once it is gone
                resource-error  error: the operator's own words, "" once there is none any more
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, name_of
from mews.kube.system.system import KindLine


def request_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a ComposabilityRequest whose state or size has changed."""
    found = new if new is not None else old
    if found is None:
        return
    before, after = _request(old), _request(new)
    if before != after:
        yield f"request/{name_of(found)}", "request-state", after


def resource_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a ComposableResource whose state, device or error has changed."""
    found = new if new is not None else old
    if found is None:
        return
    actor, before, after = f"resource/{name_of(found)}", _resource(old), _resource(new)
    if before != after:
        yield actor, "resource-state", after
    errors = [str(_status(each).get("error", "")) for each in (old, new)]
    if errors[0] != errors[1] and new is not None:
        yield actor, "resource-error", {"error": errors[1]}


def _request(found: Object | None) -> dict[str, Any]:
    if found is None:
        return {"state": "", "size": 0, "node": ""}
    wanted = found["spec"]["resource"]
    return {
        "state": _status(found).get("state", ""),
        "size": wanted["size"],
        "node": wanted.get("target_node", ""),
    }


def _resource(found: Object | None) -> dict[str, Any]:
    if found is None:
        return {"state": "", "node": "", "gpu": ""}
    status = _status(found)
    return {"state": status.get("state", ""), "node": found["spec"]["target_node"], "gpu": status.get("device_id", "")}


def _status(found: Object | None) -> Mapping[str, Any]:
    return {} if found is None else found.get("status") or {}
