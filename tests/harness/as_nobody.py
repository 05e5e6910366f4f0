"""Commands as a user without rights, for tests that run as root: what root's folders close to others is opened to that
user alone, in a mount namespace."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

NOBODY = 65534


def lacking() -> str:
    """Why it cannot be done; "" where it can."""
    if os.getuid() != 0:
        return "not root: the other tests run as a user without rights already"
    missing = [name for name in ("unshare", "setpriv") if shutil.which(name) is None]
    return f"{missing[0]} is not installed" if missing else ""


def as_nobody(argv: Sequence[str], *, home: Path, sees: Iterable[Path], stage: Path) -> list[str]:
    """The command for that user; ``home`` is theirs from now on. ``sees``: what they must be able to read; ``stage`` is
    an empty folder."""
    os.chown(home, NOBODY, NOBODY)
    lines = [f"cd {shlex.quote(str(home))}"]
    closed: dict[Path, list[Path]] = {}
    for path in sees:
        outer = _closed(path)
        if outer is not None:
            closed.setdefault(outer, []).append(path)
    for outer, paths in closed.items():
        lines += [f"mount --bind {outer} {stage}", f"mount -t tmpfs -o mode=755 none {outer}"]
        for path in paths:
            lines += [f"mkdir -p {path}", f"mount --bind {stage / path.relative_to(outer)} {path}"]
        lines.append(f"umount {stage}")
    lines.append(f'exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "$@"')
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(lines), "sh", *argv]


def _closed(path: Path) -> Path | None:
    """The outermost folder on the way there that others may not enter."""
    return next((each for each in (*reversed(path.parents), path) if not each.stat().st_mode & stat.S_IXOTH), None)


def run(argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> str:
    """What it prints; all of it where it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout
