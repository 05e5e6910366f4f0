"""The cluster and the user that a context of a kubeconfig joins."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mews.kube.client.kubeconfig.errors import KubeconfigError
from mews.kube.client.kubeconfig.files import Kubeconfig, KubeconfigEntry
from mews.names import candidates, must_be


class SelectedContext(Struct, frozen=True):
    """Where to go, and as whom."""

    name: str
    cluster: KubeconfigEntry
    user: KubeconfigEntry


def selected(config: Kubeconfig, context: str | None) -> SelectedContext:
    """Return what that context joins; None stands for the current one.

    Raises KubeconfigError for a context, cluster or user that is not there.
    """
    if not config.contexts:
        raise KubeconfigError(f"{config.shown}: is not a kubeconfig: has no contexts")
    name = context or config.current_context
    if not name:
        choices = candidates("", config.contexts)
        raise KubeconfigError(f"{config.shown}: current-context: is not set: set one of {choices}, or give --context")
    entry = config.contexts.get(name)
    if entry is None:
        place = "context" if context else "current-context"
        raise KubeconfigError(f"{config.shown}: {place}: {name!r}: {must_be(name, config.contexts)}")
    return SelectedContext(name, _named(entry, "cluster", config.clusters), _named(entry, "user", config.users))


def _named(context: KubeconfigEntry, key: str, known: Mapping[str, KubeconfigEntry]) -> KubeconfigEntry:
    name = context.text(key)
    if not name:
        raise context.refuse(key, "is not set")
    if name not in known:
        raise context.refuse(key, f"{name!r}: {must_be(name, known)}")
    return known[name]
