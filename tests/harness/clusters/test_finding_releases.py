"""Programs of a release are found by the version that they report, never as the newest folder."""

import pytest

from mews.harness.clusters.programs.finding import needed, of_release
from mews.harness.errors import RequirementError


def folder_with(where, version):
    where.mkdir(parents=True)
    for name, words in (("kube-apiserver", f"Kubernetes v{version}.2"), ("etcd", "etcd")):
        program = where / name
        program.write_text(f"#!/bin/sh\necho {words}\n", encoding="utf-8")
        program.chmod(0o755)
    return where


@pytest.fixture
def folders(tmp_path, monkeypatch):
    made = {version: folder_with(tmp_path / f"v{version}.2", version) for version in ("1.34", "1.36", "1.37")}
    folder_with(tmp_path / "v1.35.9", "1.33")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(made["1.34"]))
    return made


@pytest.mark.parametrize("release", ["1.34", "1.36", "1.37"])
def test_programs_are_those_of_the_release(folders, release):
    assert of_release("kube-apiserver", release) == str(folders[release] / "kube-apiserver")
    assert needed(release)["kube-apiserver"] == str(folders[release] / "kube-apiserver")
    assert needed(release)["etcd"] == str(folders[release] / "etcd")


def test_a_folder_that_bears_the_name_and_has_another_version_is_not_taken(folders):
    assert of_release("kube-apiserver", "1.35") is None
    with pytest.raises(
        RequirementError, match=r"etcd, kube-apiserver of Kubernetes 1\.35; get them with .*use 1\.35\.x"
    ):
        needed("1.35")
