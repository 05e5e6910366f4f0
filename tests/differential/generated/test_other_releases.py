"""A sample of generated cases is judged alike by the real servers of other releases, where their programs are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mews.harness.clusters.programs.finding import of_release
from mews.kube.releases.release_data import DEFAULT, names
from tests.differential import sides
from tests.differential.generated import fields, published
from tests.differential.generated.field_report import differing, kinds_table
from tests.differential.report import difference

_SEED, _CASES, _SHARE = 20, 300, 0.975


@pytest.fixture
def real_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """That of a release, for as long as the test runs."""
    program = of_release("kube-apiserver", request.param)
    if program is None:
        pytest.skip(f"no kube-apiserver of Kubernetes {request.param} in KUBEBUILDER_ASSETS or next to it")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(Path(program).parent))
    _forget()
    yield request.param
    _forget()


def _forget() -> None:
    sides.release.cache_clear()
    published._record.cache_clear()


@pytest.mark.wall
@pytest.mark.parametrize("real_server", [name for name in names() if name != DEFAULT], indirect=True)
def test_a_sample_of_fields_is_judged_alike(real_server: str) -> None:
    if why := sides.lacking():
        pytest.skip(why)
    assert sides.release() == real_server
    pairs = sides.compare({"fields": fields.cases(_SEED, _CASES)}, {}, namespace="default")
    found, known = differing(pairs)
    first = f"first {found[0].case.name}\n{difference(found[0])}" if found else ""
    assert len(found) + len(known) <= (1 - _SHARE) * len(pairs), f"{kinds_table(pairs)}\n{first}"
