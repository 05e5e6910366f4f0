"""A seeded sample of the fuzzer: 2,000 requests a face here, as many as wanted by ``make fuzz``."""

import pytest

from tests.fuzz.groups import GROUPS
from tests.fuzz.judge import fuzz

REQUESTS = 2000

pytestmark = pytest.mark.wall


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_no_request_makes_a_face_fail(group):
    with group() as faces:
        accounts = [fuzz(face, REQUESTS, seed=13) for face in faces]
    assert [finding for account in accounts for finding in account.findings] == []
    assert all(account.statuses["200"] for account in accounts if "without" not in account.face), "nothing got through"
