"""Faults, from their registries."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

from ci.reference.markdown import code, doc, paragraphs, table
from mews.emulator.chassis.faults import spec
from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.emulator.host.faults.registry import HOST_FAULTS
from mews.harness.api_faults.registry import API_FAULTS
from mews.harness.api_faults.requests import VERBS


def page() -> str:
    """Return those of a chassis, of a host, and between a component and the API."""
    return paragraphs(
        "# Faults",
        "`fault: {chassis: A, add: {kind: …}}` in a [step](steps.md), `mews fault add KIND NAME=VALUE…` on a running "
        "`mews up`, a profile's `quirks` in a hardware file, or the fixtures' `fault(…)`.",
        doc(spec),
        "## Of a chassis",
        *_each(CHASSIS_FAULTS),
        "## Of a host",
        *_each(HOST_FAULTS),
        "## Between a component and the API",
        "`fault: {component: scheduler, add: {kind: …}}`. In virtual time and on `--cluster embedded` and "
        "`control-plane` for components that run inside Mews. `operation` is a verb of a request: "
        f"{', '.join(code(verb) for verb in VERBS)}; `resource` is a plural such as `pods`, or `pods/binding`. While "
        "such a fault is in place, and for 15 s after, time limits of laws do not apply: "
        "actions may be late. Laws about who holds which device always apply.",
        *_each(API_FAULTS),
    )


def _each(registry: Any) -> Iterator[str]:
    for name in registry.ours():
        fault = registry.find(name)
        hints = typing.get_type_hints(fault)
        rows = [
            (code(field.name), code(_spelt(hints[field.name])), _default(field)) for field in dataclasses.fields(fault)
        ]
        often = "until it is cleared" if fault.count is None else f"{fault.count} time{'s' * (fault.count != 1)}"
        strikes = ", ".join(code(each) for each in fault.on) or "no operation; it acts by time"
        breaks = ", ".join(f"[{number}](invariants.md#{number})" for number in fault.may_break) or "none"
        yield paragraphs(
            f"### `{name}`",
            doc(fault),
            f"Affects: {strikes}. Active: {often}. Invariants that it may break: {breaks}.",
            table(("parameter", "value", "default"), rows),
        )


def _spelt(hint: Any) -> str:
    return getattr(hint, "__name__", "") if isinstance(hint, type) else str(hint).replace("typing.", "").split(".")[-1]


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return "*required*"
    return code("null" if field.default is None else field.default)
