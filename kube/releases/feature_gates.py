"""Which features of Kubernetes are on in a cluster: its release's stages, and what the user sets. Pure.

Source: ``VersionedSpecs`` of upstream's kube_features.go files as of each release (k8s.io/kubernetes, apiserver,
apiextensions-apiserver, client-go, component-base, controller-manager); rules:
component-base featuregate/feature_gate.go.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from mews.kube.releases.errors import ReleaseError
from mews.kube.releases.release_data import DEFAULT, minor, names, read

_WORDS: Mapping[str, bool] = {"true": True, "false": False}
_ALL: Mapping[str, str] = {"AllAlpha": "alpha", "AllBeta": "beta"}


class GateStage(Struct, frozen=True):
    """A gate as of a release: ``stage`` is alpha, beta, ga or deprecated; a locked one keeps its default."""

    name: str
    stage: str
    default: bool
    locked: bool = False


@cache
def gates_of(release: str) -> Mapping[str, GateStage]:
    """Return the gates of a release by name. Raises ReleaseError for an unknown release."""
    found = {}
    for words, members in read(release, "gates.json").items():
        stage, state, *rest = words.split()
        for name in members.split():
            found[name] = GateStage(name, stage, state == "on", bool(rest))
    return found


class FeatureGates(Struct, frozen=True):
    """The gates of one cluster; ``settings`` are the user's, by name.

    ``FeatureGates("1.36").on("DRADeviceTaints")`` is what every component asks.
    """

    release: str = DEFAULT
    settings: Mapping[str, bool] = {}

    def on(self, name: str) -> bool:
        """Return whether a feature is on; one that the release no longer names is as its last release left it, one that
        it does not name yet is off."""
        if name in self.settings:
            return self.settings[name]
        gate = gates_of(self.release).get(name)
        if gate is None:
            return _once(self.release, name)
        if not gate.locked:
            for every, stage in _ALL.items():
                if gate.stage == stage and every in self.settings:
                    return self.settings[every]
        return gate.default


@cache
def _once(release: str, name: str) -> bool:
    """Return what a gate was when it was last named before a release."""
    before = [gates_of(other) for other in names() if minor(other) < minor(release)]
    return next((table[name].default for table in reversed(before) if name in table), False)


def parse_feature_gates(text: str, release: str = DEFAULT) -> FeatureGates:
    """Return the gates that ``NAME=BOOL,…`` says. Raises ReleaseError with what is allowed."""
    return feature_gates(parse_settings(text, "NAME"), release)


def feature_gates(settings: Mapping[str, bool], release: str = DEFAULT) -> FeatureGates:
    """Return the gates of given settings. Raises ReleaseError for an unknown gate and for a locked gate's other
    value."""
    known = gates_of(release)
    for name, value in settings.items():
        gate = known.get(name)
        if gate is None and name not in _ALL:
            raise ReleaseError(f"{name}: no feature gate of Kubernetes {release}; {_allowed(name, known)}")
        if gate is not None and gate.locked and value is not gate.default:
            word = str(gate.default).lower()
            raise ReleaseError(f"{name}={str(value).lower()}: locked to {word} in Kubernetes {release}: leave it out")
    return FeatureGates(release, dict(settings))


def parse_settings(text: str, word: str) -> dict[str, bool]:
    """Return what ``NAME=BOOL,…`` says; ``word`` stands for the names in errors. Raises ReleaseError."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if not name or value.lower() not in _WORDS:
            raise ReleaseError(f"{part!r}: must be {word}=true or {word}=false")
        found[name] = _WORDS[value.lower()]
    return found


def _allowed(name: str, known: Mapping[str, GateStage]) -> str:
    near = difflib.get_close_matches(name, [*known, *_ALL], n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"it has {len(known)}, such as {', '.join(sorted(known)[:3])}; all: kube-apiserver --help of that release"
