"""Why a claim is not allocated: for each request, what stands between it and every device there is. Pure.

The allocator answers yes or no, node by node; a user wants to know which selector, which taint, which holder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from mews.kube.api.objects import Object, key_of, name_of
from mews.kube.api.resource_claims import results_of
from mews.kube.scheduling.devices.errors import SelectorError
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.devices.inventory import DeviceId, OfferedDevice, PoolSlice
from mews.kube.scheduling.devices.requests import ClaimedRequest, Spec, requests_of
from mews.kube.scheduling.devices.selectors import holds
from mews.kube.scheduling.devices.taints import untolerated

_NAMED = 3


def shortages(
    claim: Object,
    *,
    slices: Iterable[Object],
    claims: Iterable[Object],
    class_of: Callable[[str], Object | None],
    features: DeviceFeatures,
) -> Iterator[str]:
    """Yield a sentence for each way of each request that the devices of the cluster do not answer now."""
    devices = [device for each in slices for device in PoolSlice(each).devices]
    holders = _holders(claims)
    for request in requests_of(claim):
        parts = request.get("firstAvailable") or ()
        for part in parts or (request.get("exactly") or {},):
            name = f"{request['name']}/{part['name']}" if parts else str(request["name"])
            yield _sentence(name, part, devices, holders, class_of=class_of, features=features)


def _sentence(
    name: str,
    spec: Spec,
    devices: Sequence[OfferedDevice],
    holders: dict[DeviceId, str],
    *,
    class_of: Callable[[str], Object | None],
    features: DeviceFeatures,
) -> str:
    class_name = str(spec.get("deviceClassName") or "")
    device_class = class_of(class_name)
    if device_class is None:
        return f"request {name}: there is no DeviceClass {class_name}"
    count = None if spec.get("allocationMode") == "All" else int(spec.get("count") or 1)
    request = ClaimedRequest(name, "", spec, device_class, count, bool(spec.get("adminAccess")))
    reasons: Counter[str] = Counter()
    used: dict[str, None] = {}
    for device in devices:
        reason = _reason(request, device, features)
        holder = holders.get(device.id)
        if not reason and holder is not None and not request.admin:
            reason = "in use"
            used[holder] = None
        reasons[reason] += 1
    free = reasons.pop("", 0)
    listed = [f"{number} {reason}" for reason, number in sorted(reasons.items())]
    if used:
        first = sorted(used)[:_NAMED]
        more = f" and {len(used) - _NAMED} more" if len(used) > _NAMED else ""
        listed.append(f"held by {', '.join(first)}{more}")
    wanted = "all that match" if count is None else str(count)
    of_all = f"of {len(devices)} devices {free} are free and match"
    shown = f" ({', '.join(listed)})" if listed else ""
    return f"request {name} wants {wanted}: {of_all}{shown}"


def _reason(request: ClaimedRequest, device: OfferedDevice, features: DeviceFeatures) -> str:
    of_class = request.device_class["spec"].get("selectors") or ()
    for whose, selectors in (
        (f"class {name_of(request.device_class)}'s", of_class),
        ("its own", request.selectors),
    ):
        for index, selector in enumerate(selectors):
            try:
                if not holds(str(selector["cel"]["expression"]), device):
                    return f"refused by {whose} selector #{index}"
            except SelectorError as failed:
                return f"fail in {whose} selector #{index} ({failed})"
    taint = untolerated(device, request) if features.device_taints else None
    return f"tainted {taint['key']}" if taint is not None else ""


def _holders(claims: Iterable[Object]) -> dict[DeviceId, str]:
    return {
        DeviceId(result["driver"], result["pool"], result["device"]): key_of(claim)
        for claim in claims
        for result in results_of(claim)
        if not result.get("adminAccess") and not result.get("shareID")
    }
