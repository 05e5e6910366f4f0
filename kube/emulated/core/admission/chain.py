"""The chain itself: the plugins that a request passes, one after the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, Phase
from mews.kube.emulated.core.admission.reinvocation import Reinvocation
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store

_Key = tuple[int, AdmissionOperation, str]
_Phases = tuple[tuple[Phase, ...], tuple[Phase, ...]]


class AdmissionChain:
    """All plugins but the ``disabled`` ones (upstream's ``--disable-admission-plugins``). ``guards`` come first, and
    are always on."""

    def __init__(
        self,
        plugins: Sequence[AdmissionPlugin],
        *,
        guards: Sequence[AdmissionPlugin] = (),
        disabled: Collection[str] = (),
    ) -> None:
        unknown = sorted(set(disabled) - {plugin.name for plugin in plugins})
        if unknown:
            allowed = ", ".join(plugin.name for plugin in plugins)
            raise ValueError(f"disabled admission plugin {unknown[0]}: must be one of {allowed}")
        self._plugins = (*guards, *(plugin for plugin in plugins if plugin.name not in disabled))
        self._built_in = _built_in(self._plugins)
        self._custom: dict[_Key, tuple[Kind, _Phases]] = {}

    def mutate(self, store: Store, attributes: AdmissionAttributes) -> None:
        """The first phase: plugins that change objects, some of which refuse already."""
        phases = self._of(attributes)[0]
        for phase in phases:
            phase(store, attributes)
        if attributes.reinvocation is None:
            return
        again = Reinvocation.of(attributes)
        if again.needed:
            again.is_second = True
            for phase in phases:
                phase(store, attributes)

    def validate(self, store: Store, attributes: AdmissionAttributes) -> None:
        """The second phase: plugins that judge."""
        for phase in self._of(attributes)[1]:
            phase(store, attributes)

    def _of(self, attributes: AdmissionAttributes) -> _Phases:
        kind = attributes.kind
        key = (id(kind), attributes.operation, attributes.subresource)
        known = self._custom if kind.custom else self._built_in
        found = known.get(key)
        if found is None:
            on = [each for each in self._plugins if each.handles(kind, attributes.operation, attributes.subresource)]
            phases = (
                tuple(each.mutate for each in on if each.mutate is not None),
                tuple(each.validate for each in on if each.validate is not None),
            )
            found = known[key] = (kind, phases)  # with the kind, so that its id is not given to another
        return found[1]


@cache
def _built_in(_plugins: tuple[AdmissionPlugin, ...]) -> dict[_Key, tuple[Kind, _Phases]]:
    """Return what is known of built-in kinds: the same in every chain of those plugins."""
    return {}
