"""``python -m tests.fuzz --requests 100000 --seed 1``: requests of chance to every face; 1 where one fails."""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.fuzz.groups import FACES, SOCKETS
from tests.fuzz.judge import Account, fuzz
from tests.fuzz.socket_judge import fuzz_socket

_SHOWN = 40


def main() -> int:
    """Print an account of each face, and what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--requests", type=int, default=2000, help="of each face")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--face", default="", help="faces whose name has this in it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faces at once, each in its own process")
    chosen = parser.parse_args()
    known = [name for faces in (*FACES.values(), *SOCKETS.values()) for name in faces]
    names = [name for name in known if chosen.face == name] or [name for name in known if chosen.face in name]
    if not names:
        parser.error(f"--face {chosen.face!r}: no face has that in its name; there are {', '.join(known)}")
    if len(names) == 1:
        return one(names[0], chosen.requests, chosen.seed)
    return several(names, chosen.requests, chosen.seed, chosen.jobs)


def one(name: str, requests: int, seed: int) -> int:
    """Fuzz a face in this process."""
    logging.getLogger().addHandler(logging.NullHandler())
    account = account_of(name, requests, seed)
    sys.stdout.write(shown(account))
    sys.stdout.flush()
    return 1 if account.findings else 0


def account_of(name: str, requests: int, seed: int) -> Account:
    """Serve that face's group and fuzz it."""
    for group, names in FACES.items():
        if name in names:
            with group() as faces:
                return fuzz(faces[names.index(name)], requests, seed)
    [(sockets, names)] = [(group, names) for group, names in SOCKETS.items() if name in names]
    with sockets() as listening:
        return fuzz_socket(listening[names.index(name)], requests, seed)


def shown(account: Account) -> str:
    """An account and its first findings."""
    return "".join([f"{account}\n", *(f"  {finding}\n" for finding in account.findings[:_SHOWN])])


def several(names: list[str], requests: int, seed: int, jobs: int) -> int:
    """Fuzz each face in a process of its own, so that what one holds of memory is its own."""

    def run(name: str) -> subprocess.CompletedProcess[str]:
        argv = ["--requests", str(requests), "--seed", str(seed), "--face", name]
        return subprocess.run(
            [sys.executable, "-m", "tests.fuzz", *argv], stdout=subprocess.PIPE, text=True, check=False
        )

    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(run, name) for name in names]):
            ended = done.result()
            sys.stdout.write(ended.stdout)
            sys.stdout.flush()
            failed += ended.returncode != 0
    sys.stdout.write(f"{len(names)} faces, {requests} requests each: {failed} faces failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
