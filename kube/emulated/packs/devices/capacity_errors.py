"""What is wrong with how a device's capacity may be shared (validateRequestPolicy of pkg/apis/resource/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.quantities import parse, total_text
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError

Part = Mapping[str, Any]
_MOST_VALUES = 10


def capacity_errors(capacity: Part, path: str, *, shared: bool) -> Iterator[FieldError]:
    """Yield the errors of one capacity of a device; ``shared``: whether the device may be given several times."""
    policy, path = capacity.get("requestPolicy"), f"{path}.requestPolicy"
    if policy is None:
        return
    values, span, default = common.items(policy, "validValues"), policy.get("validRange"), policy.get("default")
    if not shared:
        yield refusals.forbidden_field(path, "allowMultipleAllocations must be true")
    elif values and span is not None:
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield refusals.forbidden_field(path, text)
    elif values or span is not None:
        kind = "validValues" if values else "validRange"
        if default is None:
            yield refusals.required(f"{path}.default", f"required when {kind} is defined")
        elif values:
            yield from _values_errors(values, default, capacity["value"], f"{path}.{kind}")
        else:
            yield from _span_errors(span or {}, default, capacity["value"], f"{path}.{kind}")


def _values_errors(values: Sequence[Any], default: Any, whole: Any, path: str) -> Iterator[FieldError]:
    numbers = [parse(value) for value in values]
    for index in range(1, len(numbers)):
        if numbers[index - 1] > numbers[index]:
            yield refusals.bad(f"{path}[{index}]", values[index], "values must be sorted in ascending order")
    if len(values) > _MOST_VALUES:  # then none is looked at
        yield common.too_many(path, len(values), _MOST_VALUES)
        numbers = []
    for index, number in enumerate(numbers):
        if number > parse(whole):
            yield refusals.bad(f"{path}[{index}]", values[index], f"option is larger than capacity value: {whole}")
    for index, number in enumerate(numbers):
        if number in numbers[:index]:
            yield refusals.duplicate(f"{path}[{index}]", f"{number:f}")
    if parse(default) not in numbers:
        yield refusals.bad(path, default, "default value is not valid according to the requestPolicy")


def _span_errors(span: Part, default: Any, whole: Any, path: str) -> Iterator[FieldError]:
    least, most, step = (span.get(name) for name in ("min", "max", "step"))
    if least is None:
        yield refusals.required(f"{path}.min", "required when validRange is defined")
        return
    if parse(least) > parse(whole):
        yield refusals.bad(f"{path}.min", least, f"min is larger than capacity value: {whole}")
    if parse(default) < parse(least):
        yield refusals.bad(f"{path}.default", default, f"default is less than min: {least}")
    if most is not None:
        if parse(least) > parse(most):
            yield refusals.bad(f"{path}.max", least, f"min is larger than max: {most}")
        if parse(most) > parse(whole):
            yield refusals.bad(f"{path}.max", most, f"max is larger than capacity value: {whole}")
        if parse(default) > parse(most):
            yield refusals.bad(f"{path}.default", default, f"default is more than max: {most}")
    if step is not None:
        yield from _step_errors(step, least, [default, *([most] if most is not None else [])], whole, f"{path}.step")


def _step_errors(step: Any, least: Any, values: Sequence[Any], whole: Any, path: str) -> Iterator[FieldError]:
    if parse(step) <= 0:
        yield refusals.bad(path, step, "must be greater than zero")
        return
    if parse(least) + parse(step) > parse(whole):
        sum_text = total_text(parse(least) + parse(step), str(least))
        yield refusals.bad(path, step, f"one step {sum_text} is larger than capacity value: {whole}")
    for value in values:
        if (parse(value) - parse(least)) % parse(step):
            yield refusals.bad(path, value, f"value is not a multiple of a given step ({step}) from ({least})")
