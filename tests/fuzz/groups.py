"""All faces, by who serves them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.fuzz.faces import api, chassis
from tests.fuzz.judge import Face
from tests.fuzz.node_faces import agents, components, hosts, kubelets
from tests.fuzz.secure_faces import secure_api, secure_chassis
from tests.fuzz.service_faces import recordings, services
from tests.fuzz.session_faces import sessions

Group = Callable[[], AbstractContextManager[list[Face]]]

GROUPS: tuple[Group, ...] = (
    chassis,
    api,
    secure_chassis,
    secure_api,
    kubelets,
    hosts,
    components,
    agents,
    sessions,
    services,
    recordings,
)
