"""A write that comes upon long work is begun anew with its result, beside a loop that goes on."""

import asyncio
import threading

import pytest

from mews.kube.api.errors import ApiError, BadRequestError, TooManyRequestsError
from mews.kube.api.resources import CONFIGMAPS
from mews.kube.cel.budgets import PACE
from mews.kube.cel.values import CelError
from mews.kube.emulated.core.store import long_work as module
from mews.kube.emulated.core.store.admission import PendingCallsError, completed
from mews.kube.emulated.core.store.long_work import (
    LONG_WORK,
    LongWork,
    LongWorkPendingError,
    LongWorkThread,
    on_loop,
    sliced,
)
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.packs.access.authorization import Authorizer
from tests.kube.emulated.apiserver.serving import serve
from tests.kube.emulated.apiserver.test_admission import BINDINGS, POLICIES, binding, data, policy


def work_of(steps):
    """Work that asks so many times whether to go on."""

    def work():
        for _ in range(steps):
            if PACE.get() is not None:
                PACE.get().go_on(1000)
        return threading.current_thread().name

    return work


def served(write, **options):
    """The result of a write as the wire has it done."""

    async def main():
        thread = LongWorkThread()
        LONG_WORK.set(LongWork(thread))
        try:
            return await completed(write, WriteRequest(**{"answers": {}, **options}))
        finally:
            thread.close()

    return asyncio.run(main())


def test_short_work_is_done_on_the_loop_and_long_work_beside_it():
    tries = []

    def write(request):
        tries.append(request)
        return sliced(work_of(3)), sliced(work_of(100))

    assert served(write) == ("MainThread", "long work")
    assert len(tries) == 2


def test_without_a_wire_all_is_done_at_once():
    assert sliced(work_of(100)) == "MainThread"


@pytest.mark.parametrize("refusal", [BadRequestError, CelError, RecursionError, ValueError])
def test_what_the_work_refuses_is_handled_by_the_write(refusal):
    def work():
        work_of(100)()
        raise refusal("no")

    def write(request):
        try:
            return sliced(work)
        except refusal as error:
            return str(error)

    assert served(write) == "no"


@pytest.mark.parametrize(
    "text", ["[1, 2, 3, 4].all(x, authorizer.requestResource.check('get').allowed())", "variables.all == 1"]
)
def test_a_policy_whose_long_expression_exceeds_its_cost_refuses_the_write(tmp_path, text):
    spends = "[1, 2, 3, 4].map(x, authorizer.requestResource.check('get').allowed()).size()"

    async def check(served):
        made = policy("costly", text, variables=[{"name": "all", "expression": spends}])
        await served.kube.create(POLICIES, made)
        await served.kube.create(BINDINGS, binding("costly"))
        with pytest.raises(ApiError) as refused:
            await served.kube.create(CONFIGMAPS, data("m"), namespace="default")
        assert (refused.value.code, refused.value.reason) == (422, "Invalid")
        assert refused.value.message.endswith("operation cancelled: actual cost limit exceeded")

    serve(tmp_path, check)


_ASKED = "[1, 2].map(x, authorizer.requestResource.check('get').allowed()).size() > 0"
"""700,000 of the ten million steps that a policy has, and soon done; an expression may have a million."""
_DIGITS = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
_LONG = f"{_DIGITS}.all(x, {_DIGITS}.all(y, {_DIGITS}.all(z, {_DIGITS}.all(u, x + y + z + u >= 0))))"
"""Too long for the loop, at a fraction of their cost."""


def test_variables_of_long_expressions_are_paid_for_by_the_write_that_finds_their_result(tmp_path):
    """Fourteen variables are within the budget, fifteen are not."""
    names = [f"v{number}" for number in range(15)]
    declared = [{"name": name, "expression": _ASKED} for name in names]

    def asking(some):
        return " && ".join(f"variables.{name}" for name in some)

    cases = {
        "fits": ([f"{asking(names[:10])} && {_LONG}", asking(names[:13])], True),
        "spent": ([f"{asking(names[:10])} && {_LONG}", asking(names[10:])], False),
        "spent-twice": ([f"{asking(names[:7])} && {_LONG}", f"{asking(names)} && {_LONG}"], False),
    }

    async def check(served):
        for name, (texts, fits) in cases.items():
            await served.kube.create(POLICIES, policy(name, *texts, variables=declared))
            await served.kube.create(BINDINGS, binding(name))
            try:
                await served.kube.create(CONFIGMAPS, data(f"m-{name}"), namespace="default")
                found = ""
            except ApiError as error:
                found = error.message
            await served.kube.delete(POLICIES, name)
            assert (found == "") is fits, (name, found)
            assert fits or "running out of cost budget" in found, (name, found)

    serve(tmp_path, check)


def test_whose_rights_a_long_expression_asks_for_is_looked_up_on_the_loop(tmp_path, monkeypatch):
    threads = []
    decide = Authorizer.decide

    def seen(self, user, asked):
        threads.append(threading.current_thread().name)
        return decide(self, user, asked)

    async def check(served):
        text = f"{_LONG} && authorizer.requestResource.check('get').allowed()"
        await served.kube.create(POLICIES, policy("asks", text))
        await served.kube.create(BINDINGS, binding("asks"))
        monkeypatch.setattr(Authorizer, "decide", seen)
        threads.clear()
        await served.kube.create(CONFIGMAPS, data("m"), namespace="default")
        assert threads
        assert set(threads) == {"MainThread"}

    serve(tmp_path, check)


def test_a_look_at_the_store_raises_on_the_thread_what_it_raises_on_the_loop():
    def refuses():
        raise BadRequestError("no")

    def work():
        work_of(100)()
        try:
            on_loop(refuses)
        except BadRequestError as error:
            return f"{error} on {threading.current_thread().name}"

    assert served(lambda request: sliced(work)) == "no on long work"


def test_a_result_counts_for_the_input_that_it_was_made_of():
    inputs = iter(["first", "second", "second"])

    def write(request):
        given = next(inputs)
        return sliced(lambda: (work_of(100)(), given)[1], lambda: given)

    assert served(write) == "second"


def test_a_webhook_that_long_work_needs_is_asked():
    async def call():
        return "answer"

    def write(request):
        def work():
            if "key" not in request.answers:
                raise PendingCallsError({"key": call})
            return request.answers["key"]

        return LONG_WORK.get().elsewhere(work, lambda: None) if LONG_WORK.get() else work()

    assert served(write) == "answer"


def test_warnings_of_a_try_that_is_given_up_are_given_once():
    def write(request):
        request.warnings.append("careful")
        sliced(work_of(100))
        return list(request.warnings)

    assert served(write) == ["careful"]


def test_the_loop_goes_on_meanwhile():
    begun, may_end = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert may_end.wait(30)
        return "done"

    async def main():
        thread = LongWorkThread()
        waiting = asyncio.create_task(thread.outcome(work))
        assert await asyncio.to_thread(begun.wait, 30)
        may_end.set()
        found = (await waiting).get()
        thread.close()
        return found

    assert asyncio.run(main()) == "done"


def test_work_that_nobody_waits_for_is_ended_and_too_much_of_it_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 1)
    begun, ended = threading.Event(), threading.Event()

    def work():
        begun.set()
        try:
            while True:
                PACE.get().go_on(1)
        finally:
            ended.set()

    async def main():
        thread = LongWorkThread()
        waiting = asyncio.create_task(thread.outcome(work))
        assert await asyncio.to_thread(begun.wait, 30)
        with pytest.raises(TooManyRequestsError):
            await thread.outcome(work)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert await asyncio.to_thread(ended.wait, 30)
        thread.close()

    asyncio.run(main())


def test_all_works_of_a_request_together_have_one_time(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    paces = []

    def work():
        for _ in range(12):
            PACE.get().go_on(1)
            threading.Event().wait(0.01)
        paces.append(PACE.get())

    async def main():
        thread = LongWorkThread()
        request = LongWork(thread)
        with pytest.raises(ApiError) as refused:
            for number in range(10):
                await request.do(LongWorkPendingError((number, None), work))
        thread.close()
        return refused.value.code

    assert asyncio.run(main()) == 504
    assert len(paces) < 3


def test_work_that_takes_too_long_is_a_timeout(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)

    def work():
        while True:
            PACE.get().go_on(1)

    async def main():
        thread = LongWorkThread()
        with pytest.raises(ApiError) as refused:
            await thread.outcome(work)
        thread.close()
        return refused.value.code

    assert asyncio.run(main()) == 504
