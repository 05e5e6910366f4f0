"""Kinds whose rules are a few lines."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from mews.harness.clusters.embedded import refusals
from mews.harness.clusters.embedded.refusals import Fault
from mews.harness.clusters.embedded.rules.base import Rules
from mews.kube.api.objects import Object

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.kinds import Kind
    from mews.harness.clusters.embedded.store import Store

_USERS_LIMIT = 1_000_000_000


def _default_secret(secret: Object) -> None:
    secret.setdefault("type", "Opaque")
    texts = secret.pop("stringData", None)
    if texts:
        coded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **coded}


def _validate_class(priority_class: Object) -> list[Fault]:
    name, value = priority_class["metadata"].get("name", ""), priority_class["value"]
    if name.startswith("system-"):
        if name in ("system-node-critical", "system-cluster-critical"):
            return []
        text = "priority class names with 'system-' prefix are reserved for system use only. error: "
        return [refusals.forbidden_field("metadata.name", f"{text}{name} is not a known system priority class")]
    if value > _USERS_LIMIT:
        text = f"maximum allowed value of a user defined priority is {_USERS_LIMIT}"
        return [refusals.forbidden_field("value", text)]
    return []


def _compare_class(new: Object, old: Object) -> list[Fault]:
    if new["value"] != old["value"]:
        return [refusals.forbidden_field("value", "may not be changed in an update.")]
    return []


def _default_service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or ():
        port.setdefault("targetPort", port["port"])


def _admit_service(store: Store, kind: Kind, service: Object) -> None:
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    if "clusterIP" not in spec:
        taken = {obj["spec"].get("clusterIP") for obj in store.list(kind).items}
        numbers = (f"10.96.{host // 256}.{host % 256}" for host in range(10, 65_535))
        spec["clusterIP"] = next(address for address in numbers if address not in taken)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _validate_lease(lease: Object) -> list[Fault]:
    duration = (lease.get("spec") or {}).get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        return [refusals.bad("spec.leaseDurationSeconds", duration, "must be greater than 0")]
    return []


SECRETS = Rules(default=_default_secret)
PRIORITY_CLASSES = Rules(validate=_validate_class, compare=_compare_class)
SERVICES = Rules(default=_default_service, admit=_admit_service)
LEASES = Rules(validate=_validate_lease)
