"""PriorityLevelConfigurations (pkg/apis/flowcontrol/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import METADATA, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.checks.common import Part, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of
from mews.kube.emulated.kinds.server_conditions import level_committed
from mews.kube.emulated.packs.flow_control.status import status_errors

_MOST_QUEUES = 10_000_000


_LARGEST_HAND_BITS = 60


def _level_errors(level: Object) -> list[FieldError]:
    return [*_level_spec_errors(level["spec"], level["metadata"].get("name", "")), *status_errors(level)]


def _level_spec_errors(spec: Part, name: str) -> Iterator[FieldError]:
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    if (name == "exempt") != (kind == "Exempt"):
        yield refusals.bad("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if limited is not None:
            yield refusals.forbidden_field("spec.limited", "must be nil if the type is not Limited")
        if exempt is not None:
            yield from _share_errors(exempt, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            yield refusals.forbidden_field("spec.exempt", "must be nil if the type is Limited")
        if limited is None:
            yield refusals.required("spec.limited", "must not be empty when type is Limited")
        else:
            yield from _limited_errors(limited, "spec.limited")
    else:
        yield refusals.unsupported("spec.type", kind, ("Exempt", "Limited"))


def _share_errors(level: Part, path: str) -> Iterator[FieldError]:
    shares, lent = level.get("nominalConcurrencyShares"), level.get("lendablePercent")
    if shares is not None and shares < 0:
        yield refusals.bad(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    if lent is not None and not 0 <= lent <= 100:
        yield refusals.bad(f"{path}.lendablePercent", lent, "must be between 0 and 100, inclusive")


def _limited_errors(limited: Part, path: str) -> Iterator[FieldError]:
    yield from _share_errors({**limited, "lendablePercent": None}, path)
    yield from _response_errors(part_of(limited, "limitResponse"), f"{path}.limitResponse")
    yield from _share_errors({"lendablePercent": limited.get("lendablePercent")}, path)
    borrowed = limited.get("borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        text = "if specified, must be a non-negative integer"
        yield refusals.bad(f"{path}.borrowingLimitPercent", borrowed, text)


def _response_errors(response: Part, path: str) -> Iterator[FieldError]:
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            text = "must be nil if limited.limitResponse.type is not Limited"
            yield refusals.forbidden_field(f"{path}.queuing", text)
    elif kind == "Queue":
        if queuing is None:
            text = "must not be empty if limited.limitResponse.type is Limited"
            yield refusals.required(f"{path}.queuing", text)
        else:
            yield from _queue_errors(queuing, f"{path}.queuing")
    else:
        yield refusals.unsupported(f"{path}.type", kind, ("Queue", "Reject"))


def _queue_errors(queuing: Part, path: str) -> Iterator[FieldError]:
    length, queues, hand = (queuing.get(name, 0) for name in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        yield refusals.bad(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        yield refusals.bad(f"{path}.queues", queues, "must be positive")
    elif queues > _MOST_QUEUES:
        yield refusals.bad(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}")
    if hand <= 0:
        yield refusals.bad(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        yield refusals.bad(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    else:
        bits = _bits(queues, hand)
        if bits > _LARGEST_HAND_BITS:
            text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
            yield refusals.bad(f"{path}.handSize", hand, text)


def _bits(queues: int, hand: int) -> int:
    """Return the bits that a draw of the hand takes (apiserver, shufflesharding.RequiredEntropyBits)."""
    if queues < 1:
        return 0
    draws = 1
    for left in range(queues, max(queues - hand, 0), -1):
        draws *= left
        if draws.bit_length() > _LARGEST_HAND_BITS + 2:
            break
    return (draws - 1).bit_length()


def _level(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing") or {}
    shares = "<none>" if limited is None else limited.get("nominalConcurrencyShares", 0)
    return [
        spec.get("type", ""),
        shares,
        *(queuing.get(n, "<none>") for n in ("queues", "handSize", "queueLengthLimit")),
    ]


RULES = Rules(
    printer=Printer(_level, is_part=True),
    after_commit=level_committed,
    validate=_level_errors,
    validate_status_update=lambda new, _: [*status_errors(new)],
    metadata=MetadataChecks(
        on_update=(METADATA,),
        on_status=(),
        status_leaves=(*RESET_WITH_STATUS, "generateName", "deletionGracePeriodSeconds"),
    ),
)
