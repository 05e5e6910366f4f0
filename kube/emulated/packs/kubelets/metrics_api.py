"""metrics.k8s.io/v1beta1 (what metrics-server serves) over HTTP; ``kubectl top``."""

from __future__ import annotations

from aiohttp import web

from mews.kube.emulated.core.wire.call import Call
from mews.kube.emulated.packs.kubelets.measures import measured, one_measured
from mews.kube.emulated.streaming.metrics import listed


async def serve(call: Call) -> web.StreamResponse:
    """Return one object or a list of them."""
    store, kubelets, kind, namespace = call.world.store, call.world.kubelets, call.kind, call.route.namespace
    if call.route.name:
        return call.answer(one_measured(store, kubelets, kind, namespace=namespace, name=call.route.name))
    labels, fields = (call.query.get(key, "") for key in ("labelSelector", "fieldSelector"))
    found = measured(store, kubelets, kind, namespace=namespace, labels=labels, fields=fields)
    return call.answer(listed(kind.resource.kind, found))
