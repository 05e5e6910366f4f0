import asyncio

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.errors import ApiError, ConflictError, ServerError, TooManyRequestsError
from mews.kube.client.patience import MOST_TIMES, patiently


def asked(*refusals: ApiError) -> tuple[str | ApiError, int, float]:
    """What comes of a request that is refused so, how often it was made, and how long it took."""
    left, times = list(refusals), 0

    async def request() -> str:
        nonlocal times
        times += 1
        if left:
            raise left.pop(0)
        return "answer"

    async def main() -> tuple[str | ApiError, int, float]:
        try:
            found: str | ApiError = await patiently(request)
        except ApiError as refused:
            found = refused
        return found, times, asyncio.get_running_loop().time()

    return run_virtual(main)


def again(after_s: int) -> dict[str, int]:
    return {"retryAfterSeconds": after_s}


def test_a_request_is_made_again_when_the_server_says() -> None:
    refusals = (TooManyRequestsError("busy", details=again(3)), ServerError("down", details=again(4)))
    assert asked(*refusals) == ("answer", 3, 7.0)


@pytest.mark.parametrize(
    "refusal",
    [TooManyRequestsError("a budget"), ServerError("broken"), ConflictError("stale", details=again(3))],
    ids=["429", "500", "409"],
)
def test_a_refusal_that_names_no_time_is_the_answer(refusal: ApiError) -> None:
    assert asked(refusal) == (refusal, 1, 0.0)


def test_a_client_loses_its_patience() -> None:
    refusals = [TooManyRequestsError(f"busy {number}", details=again(1)) for number in range(30)]
    assert asked(*refusals) == (refusals[MOST_TIMES], MOST_TIMES + 1, float(MOST_TIMES))
