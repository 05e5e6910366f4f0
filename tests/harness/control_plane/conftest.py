"""The programs of a control plane are looked up as users' are; where they are absent these tests are skipped."""

import pytest

from mews.harness.clusters.session import ClusterSession
from mews.harness.errors import RequirementError
from mews.harness.options import check_available


@pytest.fixture(scope="session")
def programs():
    try:
        check_available("control-plane")
    except RequirementError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shared(programs):
    with ClusterSession() as shared:
        yield shared
