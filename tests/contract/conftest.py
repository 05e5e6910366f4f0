from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.wire import Backend, backend

BACKENDS = [pytest.param("in-process"), pytest.param("http", marks=pytest.mark.wall)]


@pytest.fixture(scope="module", params=BACKENDS)
def shared_box(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with backend(request.param) as made:
        yield made


@pytest.fixture
def box(shared_box: Backend) -> Backend:
    """Chassis A of the demo, as it is at the start."""
    with shared_box.rack.box("A") as chassis:
        chassis.reset(shared_box.rack.clock.now())
    return shared_box
