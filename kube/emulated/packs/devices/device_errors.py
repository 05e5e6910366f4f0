"""What is wrong with requests for devices, their classes and their configuration (pkg/apis/resource/validation)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.volumes.volume_errors import driver_name_errors
from mews.kube.emulated.packs.devices.device_selectors import selector_errors

Part = Mapping[str, Any]
RequestNames = Mapping[str, Collection[str]]

MOST = 32
_MOST_ALTERNATIVES = 8
LONGEST_DATA = 10 * 1024
_LONGEST_IDENTIFIER = 32
_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoExecute", "NoSchedule")
_MODES = ("All", "ExactCount")
_REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    f"or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"
)


def label_errors(path: str, text: str) -> list[FieldError]:
    """Return a name that must be an RFC 1123 label."""
    return common.bads(path, text, names.label_texts(text))


def each(items: Sequence[Any], path: str, check: Callable[[Any, str], Iterable[FieldError]], most: int = -1) -> Any:
    """Yield what is wrong with the items of a list, and whether there are too many; an item that is null is an empty
    one."""
    for index, item in enumerate(items):
        yield from check({} if item is None else item, f"{path}[{index}]")
    if 0 <= most < len(items):
        yield common.too_many(path, len(items), most)


def repeated(items: Sequence[Any], path: str, key: str = "") -> Iterator[FieldError]:
    """Yield what stands in a list twice; ``key``: the field by which its items are told apart."""
    seen = []
    for index, item in enumerate(items):
        value = (item or {}).get(key, "") if key else item
        if value in seen:
            yield refusals.duplicate(f"{path}[{index}].{key}" if key else f"{path}[{index}]", value)
        seen.append(value)


def request_names(devices: Part) -> dict[str, Collection[str]]:
    """Return the names of a claim's requests, each with those of its alternatives."""
    return {
        (request or {}).get("name", ""): [
            (other or {}).get("name", "") for other in common.items(request or {}, "firstAvailable")
        ]
        for request in common.items(devices, "requests")
    }


def claim_spec_errors(spec: Part, path: str, *, shares: bool, stored: bool = False) -> Iterator[FieldError]:
    """Yield the spec of a ResourceClaim; ``stored``: what was taken before is not measured again; ``shares`` as in
    ``selector_errors``."""
    devices, here = common.part_of(spec, "devices"), f"{path}.devices"
    known = request_names(devices)
    requests = common.items(devices, "requests")
    yield from each(requests, f"{here}.requests", partial(_request_errors, shares=shares), MOST)
    yield from repeated(requests, f"{here}.requests", "name")
    constraints = common.items(devices, "constraints")
    yield from each(constraints, f"{here}.constraints", lambda part, at: _constraint_errors(part, at, known), MOST)

    def configuration(part: Part, at: str) -> Iterator[FieldError]:
        yield from reference_errors(common.items(part, "requests"), f"{at}.requests", known)
        yield from configuration_errors(part, at, stored=stored)

    yield from each(common.items(devices, "config"), f"{here}.config", configuration, MOST)


def _request_errors(request: Part, path: str, *, shares: bool) -> Iterator[FieldError]:
    yield from label_errors(f"{path}.name", request.get("name", ""))
    alternatives, exactly = common.items(request, "firstAvailable"), request.get("exactly")
    if alternatives:
        here = f"{path}.firstAvailable"
        yield from each(alternatives, here, partial(_alternative_errors, shares=shares), _MOST_ALTERNATIVES)
        yield from repeated(alternatives, here, "name")
    if exactly is not None:
        yield from _wanted_errors(exactly, f"{path}.exactly", shares=shares)
    text = "exactly one of `exactly` or `firstAvailable` is required"
    if not alternatives and exactly is None:
        yield refusals.required(path, text)
    elif alternatives and exactly is not None:
        yield refusals.bad(path, None, f"{text}, but multiple fields are set")


def _alternative_errors(request: Part, path: str, *, shares: bool) -> Iterator[FieldError]:
    yield from label_errors(f"{path}.name", request.get("name", ""))
    yield from _wanted_errors(request, path, shares=shares)


def _wanted_errors(request: Part, path: str, *, shares: bool) -> Iterator[FieldError]:
    """Yield the errors of which class, and how many."""
    name = request.get("deviceClassName", "")
    if not name:
        yield refusals.required(f"{path}.deviceClassName")
    else:
        yield from names.subdomain_errors(f"{path}.deviceClassName", name)
    yield from selectors_errors(common.items(request, "selectors"), f"{path}.selectors", shares=shares)
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All" and count != 0:
        yield refusals.bad(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield refusals.bad(f"{path}.count", count, "must be greater than zero")
    elif mode not in _MODES:
        yield refusals.unsupported(f"{path}.allocationMode", mode, _MODES)
    yield from each(common.items(request, "tolerations"), f"{path}.tolerations", _toleration_errors)


def _toleration_errors(toleration: Part, path: str) -> Iterator[FieldError]:
    """validateDeviceToleration: tolerations are judged whether or not taints are looked at."""
    key, operator, value, effect = (toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
    if key:
        yield from names.qualified_errors(f"{path}.key", key)
    if operator == "Exists" and value:
        yield refusals.bad(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from common.bads(f"{path}.value", value, names.label_value_texts(value))
    elif not operator:
        yield refusals.required(f"{path}.operator")
    elif operator != "Exists":
        yield refusals.unsupported(f"{path}.operator", operator, _OPERATORS)
    if effect and effect not in _EFFECTS:
        yield refusals.unsupported(f"{path}.effect", effect, _EFFECTS)


def selectors_errors(selectors: Sequence[Part], path: str, *, shares: bool) -> Iterator[FieldError]:
    """Expressions over a device; ``shares`` as in ``selector_errors``."""
    yield from each(selectors, path, partial(selector_errors, shares=shares), MOST)


def _constraint_errors(constraint: Part, path: str, known: RequestNames) -> Iterator[FieldError]:
    yield from reference_errors(common.items(constraint, "requests"), f"{path}.requests", known)
    attribute, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    if attribute is not None:
        yield from _full_name_errors(attribute, f"{path}.matchAttribute")
    elif distinct is not None:
        yield from _full_name_errors(distinct, f"{path}.distinctAttribute")
    else:
        yield refusals.required(f"{path}.matchAttribute")


def reference_errors(given: Sequence[str], path: str, known: RequestNames) -> Iterator[FieldError]:
    """Yield names of requests in the claim."""
    for index, name in enumerate(given):
        yield from request_reference_errors(name or "", f"{path}[{index}]", known)
    if len(given) > MOST:
        yield common.too_many(path, len(given), MOST)
    yield from repeated([name or "" for name in given], path)


def request_reference_errors(name: str, path: str, known: RequestNames) -> Iterator[FieldError]:
    """Yield the name of one request, or of one of its alternatives."""
    first, *rest = name.split("/")
    if len(rest) > 1:
        yield refusals.bad(path, name, _REFERENCE)
        return
    for part in (first, *rest):
        yield from label_errors(path, part)
    if first not in known or (rest and rest[0] not in known[first]):
        yield refusals.bad(path, name, _REFERENCE)


def configuration_errors(config: Part, path: str, *, stored: bool = False) -> Iterator[FieldError]:
    """Yield what a driver is told."""
    opaque, path = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        yield refusals.required(path)
        return
    yield from driver_name_errors(opaque.get("driver", ""), f"{path}.driver")
    yield from raw_errors(opaque.get("parameters"), f"{path}.parameters", stored=stored)


def raw_errors(value: Any, path: str, *, stored: bool = False) -> Iterator[FieldError]:
    """Data of a driver's own: an object."""
    if value is None:
        yield refusals.required(path)
    elif not stored and len(refusals.shown(value).encode()) > LONGEST_DATA:
        yield common.too_long(path, LONGEST_DATA)
    elif not isinstance(value, Mapping):
        yield refusals.bad(path, "<value omitted>", "must be a valid JSON object")


def attribute_name_errors(name: str, path: str) -> Iterator[FieldError]:
    """Yield the name of an attribute or a capacity: ``example.com/model`` or ``model``."""
    parts = name.split("/")
    if not name:
        yield refusals.required(path, "name required")
    elif len(parts) == 1:
        yield from _identifier_errors(name, path)
    elif len(parts) == 2:
        if not parts[0]:
            yield refusals.required(path, "the domain must not be empty")
        else:
            yield from driver_name_errors(parts[0], path)
        if not parts[1]:
            yield refusals.required(path, "the name must not be empty")
        else:
            yield from _identifier_errors(parts[1], path)


def _full_name_errors(name: str, path: str) -> Iterator[FieldError]:
    yield from attribute_name_errors(name, path)
    if name and "/" not in name:
        yield refusals.bad(path, name, "must include a domain")


def _identifier_errors(text: str, path: str) -> Iterator[FieldError]:
    if len(text.encode()) > _LONGEST_IDENTIFIER:
        yield common.too_long(path, _LONGEST_IDENTIFIER)
    if not re.fullmatch(_IDENTIFIER, text):
        yield refusals.bad(path, text, _IDENTIFIER_TEXT)


def pool_name_errors(name: str, path: str) -> Iterator[FieldError]:
    """Yield the name of a pool: parts divided by ``/``."""
    if not name:
        yield refusals.required(path)
        return
    if len(name.encode()) > 253:
        yield common.too_long(path, 253)
    for part in name.split("/"):
        yield from names.subdomain_errors(path, part)
