"""Two users of one machine: what one runs, the other can neither read nor enter, foresee nor be mistaken for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mews.harness.leftovers import sweep

ROOT = Path(__file__).resolve().parents[2]
ALICE, MALLORY = 61001, 61002

pytestmark = [pytest.mark.wall, pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")]

LOOKS = r"""
import json, os, socket, stat, sys
found = []
def look(folder):
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in sorted(names):
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            look(path)
        elif stat.S_ISSOCK(mode):
            try:
                with socket.socket(socket.AF_UNIX) as talk:
                    talk.connect(path)
                found.append(path)
            except OSError:
                pass
        elif stat.S_ISREG(mode) and (os.access(path, os.R_OK) or os.access(path, os.W_OK)):
            found.append(path)
for folder in sys.argv[1].split(":"):
    look(folder)
for pid in sys.argv[2:]:
    for name in ("environ", "mem", "maps", "fd"):
        try:
            path = f"/proc/{pid}/{name}"
            os.listdir(path) if name == "fd" else open(path, "rb").read(1)
            found.append(path)
        except OSError:
            pass
    found += [f"argument {word}" for word in open(f"/proc/{pid}/cmdline").read().split("\0") if word]
found += [f"abstract {row.split()[7]}" for row in open("/proc/net/unix") if row.split()[7:8] and "mews" in row and "@" in row]
json.dump(found, sys.stdout)
"""  # noqa: E501 - a program


def interpreter() -> tuple[list[str], dict[str, str]]:
    """A Python of this version that any user can run, and where it finds what is installed here."""
    packages = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    for path in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        try:
            argv = [path, "-c", "import msgspec, yaml, mews.harness.cli"]
            done = subprocess.run(argv, env={"PYTHONPATH": packages}, user=MALLORY, group=MALLORY, extra_groups=[])
        except OSError:
            continue
        if done.returncode == 0:
            return [path], {"PYTHONPATH": packages}
    pytest.skip("no Python of this version that other users can run")


def as_user(user: int, words: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words, env=environment, user=user, group=user, extra_groups=[], umask=0o000, cwd="/",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@contextmanager
def machine() -> Iterator[tuple[Path, Path]]:
    """A home that everybody may enter, and a folder for all temporary files."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as name:
        root = Path(name)
        root.chmod(0o755)
        home, tmp = root / "home", root / "tmp"
        home.mkdir()
        os.chown(home, ALICE, ALICE)
        home.chmod(0o755)
        tmp.mkdir()
        tmp.chmod(0o1777)
        yield home, tmp


@contextmanager
def alices(home: Path, tmp: Path, *more: str) -> Iterator[dict[str, object]]:
    """``mews up`` as Alice, without a folder of the login's."""
    python, environment = interpreter()
    environment |= {"HOME": str(home), "TMPDIR": str(tmp), "PATH": "/usr/bin:/bin"}
    words = [*python, "-m", "mews.harness.cli", "up", "--name", "hers", "--web", "--wait", "devices", *more]
    process = as_user(ALICE, words, environment)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield json.loads((home / ".local/state/mews/hers/ready.json").read_text("utf-8"))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def family(pid: int) -> list[str]:
    from tests.test_listeners import descendants

    return [str(each) for each in descendants(pid)]


def tokens_of(ready: dict[str, object]) -> set[str]:
    access = json.loads(Path(str(ready["kubeconfig"])).read_text("utf-8"))
    found = {access["users"][0]["user"]["token"]}
    for value in ready.values():
        if isinstance(value, dict) and isinstance(value.get("token"), str):
            found.add(value["token"])
    return found


def seen_by_mallory(folders: list[Path], pids: list[str]) -> list[str]:
    python, environment = interpreter()
    looking = as_user(MALLORY, [*python, "-c", LOOKS, ":".join(map(str, folders)), *pids], environment)
    out, errors = looking.communicate(timeout=60)
    assert looking.returncode == 0, errors
    found: list[str] = json.loads(out)
    return found


def test_another_user_can_read_nothing_of_a_session_and_foresee_no_name():
    with machine() as (home, tmp):
        open_file = tmp / "for-all"
        open_file.write_text("seen")
        open_file.chmod(0o644)
        with alices(home, tmp) as ready:
            pids = family(int(str(ready["pid"])))
            seen = seen_by_mallory([home, tmp], pids)
            tokens, names = tokens_of(ready), {path.name for path in tmp.iterdir()}
        with alices(home, tmp):
            again = {path.name for path in tmp.iterdir()}
    assert str(open_file) in seen, "the test sees nothing at all"
    assert len(pids) > 1
    assert len(tokens) >= 2
    arguments = [each for each in seen if each.startswith("argument ")]
    assert not [word for word in arguments for token in tokens if token in word], "a token on a command line"
    compiled = [each for each in seen if f"{home}/.cache/mews/nvml-" in each]  # from sources of ours: no secret
    assert [each for each in seen if each not in (*arguments, *compiled)] == [str(open_file)]
    assert len(names) > 1
    assert names & again == {open_file.name}


@pytest.mark.parametrize("trap", ["file", "folder"])
def test_a_run_sweeps_no_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str):
    """Mallory makes ``mews-x/owner.json`` a link to a file of the victim's, or ``mews-x`` to the victim's folder."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "owner.json").write_text(json.dumps({"pid": 1, "born": "never"}))
    theirs = tmp_path / "mews-x"
    if trap == "file":
        theirs.mkdir()
        (theirs / "owner.json").symlink_to(mine / "owner.json")
    else:
        theirs.symlink_to(mine)
    os.chown(theirs, MALLORY, MALLORY, follow_symlinks=False)
    assert sweep() == []
    assert (theirs / "owner.json").exists()
    own = tmp_path / "mews-own"
    own.mkdir()
    (own / "owner.json").write_text(json.dumps({"pid": 1, "born": "never"}))
    assert sweep() == [own]
