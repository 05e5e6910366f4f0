"""``--kubernetes``, ``--feature-gates`` and ``--runtime-config``: which Kubernetes the cluster is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import Struct

from mews.harness.errors import BadInputError
from mews.kube.releases.cluster_release import cluster_release
from mews.kube.releases.errors import ReleaseError
from mews.kube.releases.feature_gates import parse_settings
from mews.kube.releases.release_data import known_release

if TYPE_CHECKING:
    from mews.harness.scenario.model import Scenario


_OPTIONS = {"kubernetes": "kubernetes", "featureGates": "feature-gates", "runtimeConfig": "runtime-config"}
"""Key of ``stack`` -> the option that sets it."""


class KubernetesOptions(Struct, frozen=True):
    """The options as given; None leaves the scenario's own."""

    release: str | None = None
    feature_gates: str | None = None
    runtime_config: str | None = None

    def overrides(self) -> list[str]:
        """Return what ``--set`` would say of them.

        Raises BadInputError.
        """
        found = [] if self.release is None else [f"stack.kubernetes={json.dumps(_release(self.release))}"]
        pairs = (
            ("--feature-gates", "featureGates", self.feature_gates, "NAME"),
            ("--runtime-config", "runtimeConfig", self.runtime_config, "GROUP/VERSION"),
        )
        for option, key, text, word in pairs:
            if text is not None:
                try:
                    found.append(f"stack.{key}={json.dumps(parse_settings(text, word))}")
                except ReleaseError as error:
                    raise BadInputError(f"{option}: {error}") from error
        return found


def with_kubernetes(scenario: Scenario, given: KubernetesOptions) -> Scenario:
    """Return the scenario with the options' release, gates and API versions.

    Raises BadInputError.
    """
    stack = scenario.stack
    name = _release(given.release or stack.kubernetes)
    try:
        gates = stack.feature_gates if given.feature_gates is None else parse_settings(given.feature_gates, "NAME")
    except ReleaseError as error:
        raise BadInputError(f"--feature-gates: {error}") from error
    try:
        served = given.runtime_config
        runtime = stack.runtime_config if served is None else parse_settings(served, "GROUP/VERSION")
    except ReleaseError as error:
        raise BadInputError(f"--runtime-config: {error}") from error
    for option, checked in (("--feature-gates", (gates, {})), ("--runtime-config", ({}, runtime))):
        try:
            cluster_release(name, *checked)
        except ReleaseError as error:
            raise BadInputError(f"{option}: {error}") from error
    update = {"kubernetes": name, "feature_gates": gates, "runtime_config": runtime}
    made = stack.model_copy(update=update)
    try:
        made.check_needs()
    except ValueError as error:
        raise BadInputError(f"--{_OPTIONS[str(error).partition(':')[0]]}: {str(error).partition(': ')[2]}") from error
    return scenario.model_copy(update={"stack": made})


def _release(name: str) -> str:
    try:
        return known_release(name)
    except ReleaseError as error:
        raise BadInputError(f"--kubernetes: {error}") from error
