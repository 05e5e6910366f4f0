"""A process of its own that puts the table back when the judging process dies: ``python -m … FILE``.

It reads credentials as one line of JSON from standard input, answers ``ready``, and waits. ``done`` ends it; the end of
input without that means that the other side was killed. It is in a session of its own (a process group, on Windows) and
deaf to the signals that end the other.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from mews.harness.conformance.errors import HttpServerError, MalformedError, NoAnswerError
from mews.harness.conformance.open import bench_for
from mews.harness.conformance.restore import RestoreFile, put_back, read_file
from mews.harness.errors import BadInputError, RequirementError
from mews.own_files import append_own, write_own

READY, DONE = "ready", "done"
PATIENCE_S = 20.0


class Guard:
    """The guard as the judging process sees it.

    Raises RequirementError where it does not start.
    """

    def __init__(self, file: RestoreFile, credentials: tuple[str, str] | None) -> None:
        log = file.path.with_suffix(".log")
        write_own(log, "")
        with append_own(log) as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mews.harness.conformance.guard", str(file.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                text=True,
            )
        self._log = log
        answers: list[str] = []
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        output = self._process.stdout
        reader = threading.Thread(target=lambda: answers.append(output.readline()), daemon=True)
        reader.start()
        try:
            self._process.stdin.write(json.dumps(credentials) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass
        reader.join(PATIENCE_S)
        if not answers or answers[0].strip() != READY:
            self._process.kill()
            self._close()
            last_lines = log.read_text(encoding="utf-8").strip().splitlines()[-1:]
            raise RequirementError(
                f"the guard that would restore the table does not start: {' '.join(last_lines) or 'no answer'}"
            )
        file.guarded_by(self._process.pid)

    def dismiss(self) -> None:
        """All is as it was: it may go."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(DONE)
            self._process.stdin.flush()
        except OSError:
            pass
        self._close()
        self._log.unlink(missing_ok=True)

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue
        self._process.wait()


def main(arguments: Sequence[str]) -> int:
    """Return the process; 0 if there is nothing left to do."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    path = Path(arguments[0])
    credentials = json.loads(sys.stdin.readline() or "null")
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()
    if sys.stdin.read().strip() == DONE:
        return 0
    return restore(path, None if credentials is None else (credentials[0], credentials[1]))


def restore(path: Path, credentials: tuple[str, str] | None) -> int:
    """Put the table back as the file says; 0 if all of it is."""
    try:
        file = read_file(path)
        bench = bench_for(file.plan, credentials)
    except (BadInputError, RequirementError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    try:
        left = put_back(file, bench)
    finally:
        with contextlib.suppress(NoAnswerError, HttpServerError, MalformedError):
            bench.face.close()
    for text in left:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    return 1 if left else 0


if __name__ == "__main__":
    os.chdir("/")
    sys.exit(main(sys.argv[1:]))
