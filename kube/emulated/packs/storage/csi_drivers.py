"""CSIDrivers (pkg/apis/storage/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, none_if_empty, spec_of

_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32


def _default_driver(driver: Object) -> None:
    spec = driver["spec"]
    defaults = {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    for name, value in defaults.items():
        spec.setdefault(name, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _csi_driver_errors(driver: Object) -> list[FieldError]:
    spec, found = driver["spec"], []
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    found += common.option("spec.fsGroupPolicy", spec.get("fsGroupPolicy", policies[0]), policies)
    period_s = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period_s is not None and period_s < 10:
        text = "must be greater than or equal to 10 seconds"
        found.append(refusals.bad("spec.nodeAllocatableUpdatePeriodSeconds", period_s, text))
    seen: set[str] = set()
    for index, request in enumerate(items(spec, "tokenRequests")):
        found += _token_errors(request, f"spec.tokenRequests[{index}]", seen)
    for mode in items(spec, "volumeLifecycleModes"):
        found += common.option("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    return found


def _token_errors(request: Part, path: str, seen: set[str]) -> Iterator[FieldError]:
    audience, lifetime = request.get("audience", ""), request.get("expirationSeconds")
    if audience in seen:
        yield refusals.duplicate(f"{path}.audience", audience)
        return
    seen.add(audience)
    if lifetime is not None and lifetime < _SHORTEST_TOKEN_S:
        yield refusals.bad(f"{path}.expirationSeconds", lifetime, "may not specify a duration less than 10 minutes")
    if lifetime is not None and lifetime > _LONGEST_TOKEN_S:
        text = "may not specify a duration larger than 2^32 seconds"
        yield refusals.bad(f"{path}.expirationSeconds", lifetime, text)


def _compare_driver(new: Object, old: Object) -> list[FieldError]:
    found = []
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        found += common.fixed(f"spec.{shown}", new["spec"].get(name), old["spec"].get(name))
    return found


def _driver(obj: Object, _: float) -> Row:
    spec, tokens = spec_of(obj), spec_of(obj).get("tokenRequests")
    audiences = "<unset>" if tokens is None else ",".join(token.get("audience", "") for token in tokens)
    flags = [
        bool(spec.get("attachRequired", True)),
        *(bool(spec.get(n)) for n in ("podInfoOnMount", "storageCapacity")),
    ]
    modes = none_if_empty(",".join(spec.get("volumeLifecycleModes") or ()))
    return [*flags, audiences, bool(spec.get("requiresRepublish")), modes]


RULES = Rules(
    printer=Printer(_driver, is_part=True),
    default=_default_driver,
    validate=_csi_driver_errors,
    compare=_compare_driver,
)
