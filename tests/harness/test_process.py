"""A component that is a program: it runs, it is killed, and when it ends by itself that is a crash."""

import asyncio
import sys

import pytest

from mews.harness.clusters.process import ProcessComponent
from mews.harness.clusters.unit import Unit
from mews.harness.journal import Journal
from mews.harness.leftovers import born
from mews.kube.clock import rest

pytestmark = pytest.mark.wall

SAYS_AND_WAITS = "import os, signal; print(os.getpid(), flush=True); signal.pause()"


def unit(code, log):
    journal = Journal(lambda: 0.0)
    argv = [sys.executable, "-c", code]
    return Unit("program", journal, lambda fence: ProcessComponent(argv, fence=fence, log=log)), journal


async def awaited(look):
    async with asyncio.timeout(60):
        while not (found := look()):
            await rest(0.01)
    return found


def test_a_fence_that_is_cut_kills_it_at_once_and_it_can_be_started_anew(tmp_path):
    log = tmp_path / "log"

    async def main():
        program, _ = unit(SAYS_AND_WAITS, log)
        program.start()
        first = int(await awaited(lambda: log.exists() and log.read_text().strip()))
        program.cut()
        await awaited(lambda: not born(first))
        await program.kill()
        program.start()
        second = int((await awaited(lambda: log.read_text().split()[1:]))[0])
        assert born(second)
        await program.close()
        assert not born(second)
        assert program.crash is None

    asyncio.run(main())


def test_an_end_by_itself_is_a_crash_with_its_last_words(tmp_path):
    async def main():
        program, journal = unit("raise SystemExit('no such option')", tmp_path / "log")
        program.start()
        await awaited(lambda: program.crash is not None)
        (line,) = journal.find("component", "crashed")
        assert "exited with code 1: no such option" in line.fields["cause"]
        await program.close()

    asyncio.run(main())


def test_a_program_that_is_not_there_is_named(tmp_path):
    async def main():
        journal = Journal(lambda: 0.0)
        argv = ["/no/such/program"]
        program = Unit("p", journal, lambda fence: ProcessComponent(argv, fence=fence, log=tmp_path / "log"))
        program.start()
        await awaited(lambda: program.crash is not None)
        assert "/no/such/program: cannot be started" in str(program.crash)
        await program.close()

    asyncio.run(main())
