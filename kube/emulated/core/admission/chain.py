"""The chain itself: which plugins a request passes, in upstream's order (pkg/kubeapiserver/options/plugins.go)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, Phase
from mews.kube.emulated.core.admission.reinvocation import Reinvocation
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.kinds import namespace_admission as lifecycle
from mews.kube.emulated.kinds import quota_admission as quotas
from mews.kube.emulated.kinds.pods import limit_ranger, pod_security
from mews.kube.emulated.kinds.pods import pod_admission as pods
from mews.kube.emulated.kinds.pods import service_account_admission as service_accounts
from mews.kube.emulated.packs.access import escalation, node_restriction
from mews.kube.emulated.packs.certificates import request_admission as certificates
from mews.kube.emulated.packs.policies import policy_admission as policies
from mews.kube.emulated.packs.policies import webhook_admission as webhooks
from mews.kube.emulated.packs.storage import volume_admission as claims

PLUGINS: Sequence[AdmissionPlugin] = (
    lifecycle.PLUGIN,
    limit_ranger.PLUGIN,
    service_accounts.PLUGIN,
    node_restriction.PLUGIN,
    claims.TAINT_NODES,
    pod_security.PLUGIN,
    pods.PRIORITY,
    pods.DEFAULT_TOLERATION_SECONDS,
    claims.DEFAULT_STORAGE_CLASS,
    claims.IN_USE_PROTECTION,
    claims.CLAIM_RESIZE,
    pods.RUNTIME_CLASS,
    certificates.APPROVAL,
    certificates.SIGNING,
    certificates.SUBJECT_RESTRICTION,
    claims.DEFAULT_INGRESS_CLASS,
    webhooks.MUTATING_WEBHOOK,
    policies.PLUGIN,
    webhooks.VALIDATING_WEBHOOK,
    quotas.PLUGIN,
)
"""Those that are on; ResourceQuota comes last, so that nothing is counted that another refuses."""

_GUARDS: Sequence[AdmissionPlugin] = (escalation.PLUGIN, lifecycle.SYSTEM_PRIORITY_CLASSES)
"""What upstream's storage of a kind refuses before anything else is asked: no plugins there, so always on."""

_Key = tuple[int, AdmissionOperation, str]
_Phases = tuple[tuple[Phase, ...], tuple[Phase, ...]]


class AdmissionChain:
    """All plugins but the ``disabled`` ones (upstream's ``--disable-admission-plugins``)."""

    def __init__(self, plugins: Sequence[AdmissionPlugin] = PLUGINS, *, disabled: Collection[str] = ()) -> None:
        unknown = sorted(set(disabled) - {plugin.name for plugin in plugins})
        if unknown:
            allowed = ", ".join(plugin.name for plugin in plugins)
            raise ValueError(f"disabled admission plugin {unknown[0]}: must be one of {allowed}")
        self._plugins = (*_GUARDS, *(plugin for plugin in plugins if plugin.name not in disabled))
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
