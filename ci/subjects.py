"""``python -m ci.subjects``: judge the subjects of commits.

- ``python -m ci.subjects FILE`` judges the message in FILE; the hook that ``install`` writes calls it.
- ``python -m ci.subjects new [BASE]`` judges the commits that HEAD has and BASE has not; CI and ``make lint`` call it.
- ``python -m ci.subjects install`` writes the hook, unless the clone already has another one; ``make`` calls it.

A subject is one line of at most 60 characters. It begins with a capitalised verb in the imperative and ends without a
period. Exits with 1 and a line for each fault. Only the standard library is imported, because the hook may run
without ``.venv`` and with an older Python than Mews needs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

MOST = 60
_MADE_BY_GIT = re.compile(r'^(Merge |Revert "|(fixup|squash|amend)! )')
"""Subjects that git writes itself. A fixup is folded into another commit before it lands."""
_WORD = re.compile(r"[A-Z][a-z]+(-[a-z]+)?(?=\s|$)")
_ENDINGS = re.compile(r"(ed|ing|(?<!s)s)$")
_IMPERATIVES = re.compile(
    "alias|bias|bring|canvas|embed|exceed|feed|focus|heed|need|ping|proceed|ring|seed|shed|speed|spring|string|succeed|swing"
)
"""Verbs whose imperative ends like another form."""
_NO_VERBS = re.compile(
    "an?|another|bug|did|done|each|every|fix-?up|it|made|more|my|new|now?|one|our|some|th(at|e|ere|ese|is|ose)|two"
    "|was|were?|what|when|where|why|wip"
)
_SCISSORS = "# ------------------------ >8"
_MARK = "# commit-msg hook of Mews, written by `make`"
_HOOK = f"""#!/bin/sh
{_MARK}: python -m ci.subjects install
# Checkouts without this check accept every message.
[ -f ci/subjects.py ] || exit 0
for python in .venv/bin/python python3; do
  command -v "$python" >/dev/null && exec "$python" -m ci.subjects "$1"
done
exit 0
"""


def faults(subject: str) -> Iterator[str]:
    """Yield what is wrong with a subject, a phrase each; none for subjects that git writes itself."""
    if _MADE_BY_GIT.match(subject):
        return
    if len(subject) > MOST:
        yield f"{len(subject)} characters; at most {MOST}"
    first = _WORD.match(subject)
    if first is None:
        yield "must begin with a capitalised word, without a prefix"
    elif _NO_VERBS.fullmatch(word := first[0].lower()) or (_ENDINGS.search(word) and not _IMPERATIVES.fullmatch(word)):
        yield f"{first[0]!r} is not a verb in the imperative, such as Add, Fix or Remove"
    if subject.endswith("."):
        yield "must not end with a period"


def subject_of(message: str) -> str:
    """Return the first line of a message that git keeps; "" for an empty message, which git refuses itself."""
    kept = message.partition(_SCISSORS)[0].splitlines()
    return next((line.strip() for line in kept if line.strip() and not line.startswith("#")), "")


def new_commits(base: str, folder: Path) -> list[tuple[str, str]]:
    """Abbreviated hash and subject of each commit of HEAD that ``base`` lacks, merges left out.

    Where ``base`` is not known, origin/main and main stand in for it. HEAD alone is judged where none of them is an
    older commit: a clone that is shallow or has no upstream cannot tell which commits are new.
    """
    head = _commit(folder, "HEAD")
    known = next((found for each in (base, "origin/main", "main") if (found := _commit(folder, each))), "")
    chosen = [f"{known}..{head}"] if known not in ("", head) else ["-1", head]
    lines = _git(folder, "log", "--no-merges", "--format=%h %s", *chosen).splitlines() if head else []
    return [(name, subject) for name, _, subject in (line.partition(" ") for line in lines)]


def _commit(folder: Path, name: str) -> str:
    return _git(folder, "rev-parse", "-q", "--verify", f"{name}^{{commit}}") if name else ""


def install(folder: Path) -> str:
    """Write the hook into the clone that ``folder`` lies in; why it was not written, or ""."""
    if not (folder / ".git").exists() or not (place := _git(folder, "rev-parse", "--git-path", "hooks/commit-msg")):
        return ""  # an sdist, a copy within another clone, or a machine without git
    if shared := _git(folder, "config", "--get", "core.hooksPath"):
        return f"commit-msg hook not installed: core.hooksPath is {shared}, which other clones may use"
    hook = folder / place
    if hook.exists() and _MARK not in hook.read_text(encoding="utf-8", errors="replace"):
        return f"commit-msg hook not installed: {hook} already exists"
    try:
        hook.parent.mkdir(parents=True, exist_ok=True)
        hook.write_text(_HOOK, encoding="utf-8")
        hook.chmod(0o755)
    except OSError as error:
        return f"commit-msg hook not installed: {hook}: {error.strerror}"
    return ""


def _git(folder: Path, *arguments: str) -> str:
    """Return what git prints; "" where git fails or is missing."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8")
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def main(arguments: Sequence[str]) -> int:
    """See the module."""
    folder = Path.cwd()
    if not arguments or len(arguments) > (2 if arguments[0] == "new" else 1):
        sys.stderr.write("usage: python -m ci.subjects FILE | new [BASE] | install\n")
        return 2
    if arguments[0] == "install":
        if line := install(folder):
            sys.stderr.write(f"{line}\n")
        return 0
    if arguments[0] == "new":
        judged = new_commits("".join(arguments[1:]), folder)
    else:
        judged = [("subject", subject_of(Path(arguments[0]).read_text(encoding="utf-8", errors="replace")))]
    wrong = [f"{name}: {subject!r}: {fault}" for name, subject in judged if subject for fault in faults(subject)]
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
