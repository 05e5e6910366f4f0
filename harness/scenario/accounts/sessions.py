"""What ``mews up --scenario``, a session's steps and its recording do with the keys of a scenario."""

from __future__ import annotations

from mews.harness.backends import DEFAULT_BACKEND
from mews.harness.scenario.accounts.account import HONOURED, KeyAccount, UnplayedKey, harmless, ignored, refused
from mews.harness.scenario.accounts.clusters import left_out
from mews.harness.scenario.accounts.steps import EVERY_STEP
from mews.harness.scenario.model import Scenario
from mews.systems import registry

_READ = harmless("names and texts, put in place as the file is read")
_NOT_RUN = ignored("a session is brought up and left to its users: mews run plays this")
_STACK = (
    "defaultScheduler.**",
    "controllers.run",
    "controllers.program",
    "dialect",
    "profile",
    "storage",
    "metrics",
    "kubelet.**",
    "kubernetes",
    "featureGates.**",
    "runtimeConfig.**",
)
_PLAYED = (
    *("timeout", "stepTimeout", "objects", "workload.**", "metrics.**", "invariants", "expects", "requires.**"),
    *(f"{part}.**" for part in ("steps", "disruptions", "catch", "finally")),
    *("tail", "quiet", "order", "judgedBy"),
)

SESSION = KeyAccount(
    "mews up",
    {
        **dict.fromkeys(("apiVersion", "kind", "metadata.**", "bindings", "templates"), _READ),
        **dict.fromkeys(("hardware", "seed", "bounds", "images", "unknownImages"), HONOURED),
        **dict.fromkeys((f"stack.{key}" for key in (*_STACK, "replace.**", "extenders.**")), HONOURED),
        **dict.fromkeys((f"stack.{name}.**" for name in registry.OURS), HONOURED),
        **dict.fromkeys(_PLAYED, _NOT_RUN),
    },
)
"""``mews up --scenario FILE``, and what is brought up for tests."""


def left_out_of_session(scenario: Scenario, cluster: str) -> list[UnplayedKey]:
    """Return what of a scenario ``mews up`` leaves out on that cluster."""
    found = [*SESSION.ignored(scenario), *SESSION.refused(scenario)]
    return found if cluster == DEFAULT_BACKEND else list(dict.fromkeys((*found, *left_out(scenario, cluster))))


_PROGRAMS = refused("these are programs of yours, which a file of one session cannot carry")
_NO_PART = harmless("no part of the session: mews up has named it")

RECORDING = KeyAccount(
    "mews record",
    {
        **SESSION.rules,
        **dict.fromkeys(("stack.replace.**", "stack.extenders.**"), _PROGRAMS),
        **dict.fromkeys(_PLAYED, _NO_PART),
    },
)
"""``mews record`` and ``mews snapshot``: what of the session's scenario their files carry on."""

_NO_SCENARIO = "belongs to a scenario; a live session has none"

STEP = KeyAccount(
    "a live session",
    {
        **dict.fromkeys((*EVERY_STEP, "name", "timeout"), HONOURED),
        "workload": refused(_NO_SCENARIO),
        "script.**": refused(_NO_SCENARIO),
        "outputs.**": refused("belong to a scenario; a live session has no later steps"),
    },
)
"""A single step that is asked of a session: patterns begin at the step's own keys."""
