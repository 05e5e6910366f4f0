"""Which pods a term of pod affinity speaks of."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mews.kube.api.selectors import match_expressions
from mews.kube.scheduling.podinfo import PodInfo, PodTerm

NamespaceLabels = Callable[[str], Mapping[str, str]]
"""A namespace's labels by its name; empty when it is unknown."""


def selects(term: PodTerm, pod: PodInfo, namespace_labels: NamespaceLabels) -> bool:
    """Return whether the term's namespaces and selector cover the pod; a term without a selector covers none."""
    if term.selector is None or not _namespace_covered(term, pod.namespace, namespace_labels):
        return False
    return match_expressions(term.selector, pod.labels)


def _namespace_covered(term: PodTerm, namespace: str, namespace_labels: NamespaceLabels) -> bool:
    if namespace in term.namespaces:
        return True
    return term.namespace_selector is not None and match_expressions(
        term.namespace_selector, namespace_labels(namespace)
    )
