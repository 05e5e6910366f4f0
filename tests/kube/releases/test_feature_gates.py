"""Feature gates follow the release, and what the user sets."""

import pytest

from mews.kube.releases.errors import ReleaseError
from mews.kube.releases.feature_gates import FeatureGates, feature_gates, gates_of, parse_feature_gates
from mews.kube.releases.release_data import DEFAULT, git_version, names, read


@pytest.mark.parametrize(
    ("release", "taints", "capacity"),
    [("1.34", ("alpha", False), False), ("1.36", ("beta", True), True), ("1.37", ("ga", True), True)],
)
def test_a_gate_has_the_stage_of_its_release(release, taints, capacity):
    gate = gates_of(release)["DRADeviceTaints"]
    assert (gate.stage, gate.default) == taints
    assert FeatureGates(release).on("DRADeviceTaints") is taints[1]
    assert FeatureGates(release).on("DRAConsumableCapacity") is capacity


def test_a_setting_wins_over_the_default():
    gates = parse_feature_gates("DRADeviceTaints=true, DynamicResourceAllocation=False", "1.34")
    assert gates.on("DRADeviceTaints")
    assert not gates.on("DynamicResourceAllocation")
    assert not gates.on("DRAExtendedResource")


def test_all_of_a_stage_are_set_at_once_but_for_those_named_and_locked():
    gates = parse_feature_gates("AllAlpha=true,DRAExtendedResource=false,AllBeta=false", "1.34")
    assert gates.on("DRADeviceTaints")
    assert not gates.on("DRAExtendedResource")
    assert not gates.on("WatchList")
    assert gates.on("DynamicResourceAllocation")


def test_a_gate_that_a_later_release_dropped_stays_as_it_was_and_one_to_come_is_off():
    dropped = next(name for name, gate in gates_of("1.34").items() if name not in gates_of("1.37") and gate.locked)
    assert FeatureGates("1.37").on(dropped) is gates_of("1.34")[dropped].default
    to_come = next(name for name in gates_of("1.37") if name not in gates_of("1.34"))
    assert not FeatureGates("1.34").on(to_come)
    assert not FeatureGates("1.37").on("NoSuchGate")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("DRADeviceTaint=true", "DRADeviceTaint: no feature gate of Kubernetes 1.34; did you mean DRADeviceTaints"),
        ("Qqq=true", "Qqq: no feature gate of Kubernetes 1.34; it has "),
        ("DRADeviceTaints", "'DRADeviceTaints': must be NAME=true or NAME=false"),
        ("DRADeviceTaints=1", "'DRADeviceTaints=1': must be NAME=true or NAME=false"),
        ("=true", "'=true': must be NAME=true or NAME=false"),
        ("KubeletTracing=false", "KubeletTracing=false: locked to true in Kubernetes 1.34"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_is_allowed(text, told):
    with pytest.raises(ReleaseError) as caught:
        parse_feature_gates(text, "1.34")
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_an_unknown_release_is_refused_with_those_that_there_are():
    with pytest.raises(ReleaseError, match=r"'1\.9': must be a release of Kubernetes: 1\.34, "):
        feature_gates({}, "1.9")


def test_every_release_has_its_gates_once_and_a_version_of_its_minor():
    assert DEFAULT in names()
    assert list(names()) == sorted(names(), key=lambda name: int(name.split(".")[1]))
    for name in names():
        assert git_version(name).startswith(f"v{name}.")
        listed = [gate for members in read(name, "gates.json").values() for gate in members.split()]
        assert len(listed) == len(set(listed)) > 150
