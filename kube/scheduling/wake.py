"""What may make a refused pod fit."""

from __future__ import annotations

from collections.abc import Callable
from enum import Flag, auto

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.scheduling.podinfo import PodInfo

EXTENDER = "Extender"
"""What refusals by extenders go by where plugins have their names: they say nothing of what may help, so any change
does, also of the pod's own annotations (measured on kube-scheduler 1.34)."""


class Action(Flag):
    """What happened to an object. Pods count from when they are bound: ADD bound, DELETE gone or finished."""

    ADD = auto()
    UPDATE = auto()
    DELETE = auto()
    ANY = ADD | UPDATE | DELETE


Hint = Callable[[PodInfo, Object | None, Object | None], bool]
"""(unschedulable pod, old, new) -> whether this change may make the pod fit."""


class Wake(Struct, frozen=True):
    """A pod that this plugin refused is retried when such a change comes and ``hint`` (None: always) says so.

    Resources other than pods and nodes are watched because a Wake names them.
    """

    resource: Resource
    actions: Action = Action.ANY
    hint: Hint | None = None
    namespace: str | None = None
