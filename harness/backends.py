"""The backends: every way to run a cluster is one value, found by its name in one table.

A further one is a folder below ``mews.harness.clusters`` with a ``backend.py``, and a line in ``BACKENDS``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

BACKENDS: Mapping[str, str] = {
    "embedded": "mews.harness.clusters.embedded.backend:BACKEND",
    "control-plane": "mews.harness.clusters.control_plane.backend:BACKEND",
    "kind": "mews.harness.clusters.kind.backend:BACKEND",
    "kubeconfig": "mews.harness.clusters.kubeconfig.backend:BACKEND",
}
"""Name (``--cluster``) -> ``module:value`` of its Backend, the default first. Loaded when it is asked for: the command
line must not wait for clusters that nobody uses."""

DEFAULT_BACKEND = next(iter(BACKENDS))

if TYPE_CHECKING:
    BackendName = str
else:
    BackendName = Literal[tuple(BACKENDS)]
    """A name in a scenario file: pydantic and the JSON Schema list what the table has; mypy cannot know it."""


class Backend(Struct, frozen=True):
    """One way to run a cluster.

    ``times`` are the times it can run in, its default first. ``opener`` names (``module:function``) what opens a
    cluster for a ``ClusterRequest``; it is only named, since this table lies below all clusters. ``check_available``
    raises RequirementError where this machine has not what the backend needs.
    """

    name: str
    times: tuple[str, ...]
    opener: str
    check_available: Callable[[], object]
    emulates_nodes: bool = True
    """Nodes are emulated here: other processes reach the whole of it, and it can be held open after a run. Else they
    are real ones, and our components run in pods."""
    needs_session: bool = False
    """What it opens clusters on is shared by scenarios, and ended with the ClusterSession."""
    is_the_users: bool = False
    """The cluster is somebody's: found by ``--kubeconfig`` and ``--context``, its own parts are not ours to change."""
    stays_up: bool = False
    """``mews up`` can bring it up."""
    chooses_api_port: bool = False
    """``--api-port`` can be given."""


def backend_of(name: str) -> Backend:
    """Return the backend of that name; KeyError for none."""
    backend: Backend = load(BACKENDS[name])
    return backend


def load(name: str) -> Any:
    """Return the value that ``module:value`` names."""
    module, _, value = name.partition(":")
    return getattr(importlib.import_module(module), value)


def backends_that(fit: Callable[[Backend], bool]) -> tuple[str, ...]:
    """Return the names of the backends that fit, in the order of the table."""
    return tuple(name for name in BACKENDS if fit(backend_of(name)))
