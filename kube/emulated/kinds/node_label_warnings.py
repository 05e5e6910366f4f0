"""What the server warns of in labels of nodes that are old (pkg/api/node/util.go)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names

OLD_NODE_LABELS: Mapping[str, str] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def key_warnings(keys: Iterable[str], path: str) -> Iterator[str]:
    """Yield the warnings of the keys of a map of node labels; ``path`` may name the key (``{key}``)."""
    for key in keys:
        if key in OLD_NODE_LABELS:
            yield f"{path.format(key=key)}: {OLD_NODE_LABELS[key]}"


def node_term_warnings(term: Part, path: str, *, with_values: bool = False) -> Iterator[str]:
    """Yield the warnings of a term of a node selector."""
    for index, expression in enumerate(items(term, "matchExpressions")):
        here, key = f"{path}.matchExpressions[{index}]", expression.get("key", "")
        if key in OLD_NODE_LABELS:
            yield f"{here}.key: {key} is {OLD_NODE_LABELS[key]}"
        for place, value in enumerate(items(expression, "values") if with_values else ()):
            for text in names.label_value_texts(value):
                yield f"{here}.values[{place}]: {value} is invalid, {text}"
