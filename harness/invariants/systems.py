"""What the systems of a run bring to its judge."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mews.harness.invariants.invariant import JudgedSystems
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.kube.system.configured import ConfiguredSystem


def judged_systems(
    systems: Iterable[ConfiguredSystem], components: Collection[str], *, by_laws: bool = False
) -> JudgedSystems:
    """Return what these systems declare; only schedulers that are among the running components are counted on.
    ``by_laws``: laws alone judge, and nothing depends on the order of the steps."""
    systems = tuple(systems)
    schedulers = [DEFAULT_SCHEDULER] if DEFAULT_SCHEDULER in components else []
    for each in systems:
        for name, component in each.components():
            if component.scheduler is not None and name in components:
                schedulers.append(component.scheduler(each.configuration))
    pooled = (each.pooled for each in systems)
    holds = (each.system.judging.holds(each.configuration) for each in systems)
    return JudgedSystems(
        pooled=tuple(entry for entry in pooled if entry is not None),
        schedulers=tuple(schedulers),
        holds=tuple(rule for rule in holds if rule is not None),
        part_of=tuple(each.system.judging.part_of for each in systems if each.system.judging.part_of is not None),
        parts_known=next(filter(None, (each.system.judging.parts_known(each.configuration) for each in systems)), ""),
        outside_known=next(
            filter(None, (each.system.judging.outside_known(each.options) for each in systems if by_laws)), ""
        ),
        stands_for={name: others for each in systems for name, others in each.system.stands_for.items()},
        other_units={name: other for each in systems for name, other in each.system.other_units.items()},
        invariants=tuple(
            law
            for each in systems
            for law in (*each.system.judging.invariants(), *each.system.judging.laws(each.configuration))
        ),
    )


def bounds_of(systems: Iterable[ConfiguredSystem]) -> dict[str, float | None]:
    """Return the bounds of these systems' laws, at their defaults."""
    return {name: bound for each in systems for name, bound in each.system.judging.bounds.items()}
