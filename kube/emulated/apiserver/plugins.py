"""Which plugins a request passes, in upstream's order (pkg/kubeapiserver/options/plugins.go)."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.emulated.core.admission.plugin import AdmissionPlugin
from mews.kube.emulated.kinds import namespace_admission, quota_admission
from mews.kube.emulated.kinds.pods import limit_ranger, pod_admission, pod_security, service_account_admission
from mews.kube.emulated.packs.access import escalation, node_restriction
from mews.kube.emulated.packs.certificates import request_admission
from mews.kube.emulated.packs.policies import policy_admission, webhook_admission
from mews.kube.emulated.packs.storage import volume_admission

PLUGINS: Sequence[AdmissionPlugin] = (
    namespace_admission.PLUGIN,
    limit_ranger.PLUGIN,
    service_account_admission.PLUGIN,
    node_restriction.PLUGIN,
    volume_admission.TAINT_NODES,
    pod_security.PLUGIN,
    pod_admission.PRIORITY,
    pod_admission.DEFAULT_TOLERATION_SECONDS,
    volume_admission.DEFAULT_STORAGE_CLASS,
    volume_admission.IN_USE_PROTECTION,
    volume_admission.CLAIM_RESIZE,
    pod_admission.RUNTIME_CLASS,
    request_admission.APPROVAL,
    request_admission.SIGNING,
    request_admission.SUBJECT_RESTRICTION,
    volume_admission.DEFAULT_INGRESS_CLASS,
    webhook_admission.MUTATING_WEBHOOK,
    policy_admission.PLUGIN,
    webhook_admission.VALIDATING_WEBHOOK,
    quota_admission.PLUGIN,
)
"""Those that are on; ResourceQuota comes last, so that nothing is counted that another refuses."""

GUARDS: Sequence[AdmissionPlugin] = (escalation.PLUGIN, namespace_admission.SYSTEM_PRIORITY_CLASSES)
"""What upstream's storage of a kind refuses before anything else is asked: no plugins there, so always on."""
