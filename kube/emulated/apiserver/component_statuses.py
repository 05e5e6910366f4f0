"""componentstatuses: nothing is stored, the components are asked for their health
(pkg/registry/core/componentstatus/rest.go)."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from mews.kube.api.errors import ApiError, NotFoundError
from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.selection import select
from mews.kube.emulated.core.wire.call import Call

RESOURCE = "componentstatuses"
_PORTS: Mapping[str, int] = {"scheduler": 10259, "controller-manager": 10257}
"""Where kube-apiserver looks for their health."""
_ETCD = "etcd-0"


async def serve(call: Call) -> web.StreamResponse:
    """Return one component, or a list of those that are selected."""
    name = call.route.name
    found = {each: _status(call, each) for each in (*_PORTS, _ETCD)}
    if not name:
        selection = select(
            call.kind, labels=call.query.get("labelSelector", ""), fields=call.query.get("fieldSelector", "")
        )
        items = [status for status in found.values() if selection.matches(status)]
        return call.answer({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items})
    if name not in found:
        details = {"name": name, "kind": "componentstatus"}
        raise NotFoundError(f'componentstatus "{name}" not found', details=details)
    return call.answer({"kind": "ComponentStatus", "apiVersion": "v1", **found[name]})


def no_watch() -> ApiError:
    """Return the refusal of a watch (endpoints/handlers/get.go)."""
    return ApiError(
        f'watch is not supported on resources of kind "{RESOURCE}"',
        code=405,
        reason="MethodNotAllowed",
        details={"kind": RESOURCE},
    )


def _status(call: Call, name: str) -> Object:
    if name == _ETCD or call.world.kubelets.runs(name):
        status, message = "True", "ok"
    else:
        place = f"127.0.0.1:{_PORTS[name]}"
        status, message = "False", f'Get "https://{place}/healthz": dial tcp {place}: connect: connection refused'
    return {
        "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": status, "message": message}],
    }
