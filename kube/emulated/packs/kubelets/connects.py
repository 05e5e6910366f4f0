"""What connects to a pod, node or service passes admission, too: exec, attach, portforward, proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation, completed
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.wire.call import Call
from mews.kube.emulated.core.wire.parameters import flag

CONNECTED = frozenset({"attach", "exec", "portforward", "proxy"})
_FLAGS = ("stdin", "stdout", "stderr", "tty")


async def admit(call: Call) -> None:
    """Raise ``ApiError`` where admission refuses a connection."""
    sub = call.kind.subresource(call.route.subresource)
    if sub is None:
        return
    body = {"kind": sub.kind, "apiVersion": "v1", **_options(call)}

    def write(request: WriteRequest) -> None:
        attributes = AdmissionAttributes(
            call.kind,
            AdmissionOperation.CONNECT,
            body,
            None,
            request,
            call.namespace,
            call.route.name,
            call.route.subresource,
            body_kind=("", "v1", sub.kind),
        )
        call.world.store.admission.mutate(call.world.store, attributes)
        call.world.store.admission.validate(call.world.store, attributes)

    await completed(write, WriteRequest(call.user, answers={}))


def _options(call: Call) -> Mapping[str, Any]:
    query = call.request.query
    found: dict[str, Any] = {name: True for name in _FLAGS if flag(query, name)}
    if query.get("container"):
        found["container"] = query["container"]
    if query.getall("command", []):
        found["command"] = list(query.getall("command"))
    return found
