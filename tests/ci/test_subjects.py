"""Subjects of commits: what the hook and the CI check refuse, and where the hook is written."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ci import subjects

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the user's settings nor a git that runs these tests as a hook decide."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.com")


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)


def commit(folder: Path, subject: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return git(folder, "commit", "--allow-empty", "-m", subject, *arguments)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with this check and the first commit on main."""
    folder = tmp_path / "clone"
    (folder / "ci").mkdir(parents=True)
    shutil.copy(ROOT / "ci" / "subjects.py", folder / "ci")
    git(folder, "init", "-b", "main")
    git(folder, "add", ".")
    commit(folder, "some subject from before the check.")
    return folder


@pytest.mark.parametrize(
    "subject",
    ["Bound JSON patch copies", "Bring back the page", "Embed the index", "Pass seeds on", "Re-read the table",
     "Add " + "x" * 56, "Merge branch 'a' into a branch whose name is so long that it fills the line",
     'Revert "A subject of somebody else, which had been too long from the very start"', "fixup! Add x"],
)  # fmt: skip
def test_a_right_subject_has_no_faults(subject: str) -> None:
    assert list(subjects.faults(subject)) == []


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("Add " + "x" * 57, "61 characters; at most 60"),
        ("Add a page.", "must not end with a period"),
        ("add a page", "must begin with a capitalised word, without a prefix"),
        ("docs: Add a page", "must begin with a capitalised word, without a prefix"),
        ("WIP", "must begin with a capitalised word, without a prefix"),
        ("Wip on pages", "'Wip' is not a verb in the imperative, such as Add, Fix or Remove"),
        ("Added a page", "'Added' is not a verb in the imperative, such as Add, Fix or Remove"),
        ("Adds a page", "'Adds' is not a verb in the imperative, such as Add, Fix or Remove"),
        ("Adding a page", "'Adding' is not a verb in the imperative, such as Add, Fix or Remove"),
        ("One more page", "'One' is not a verb in the imperative, such as Add, Fix or Remove"),
    ],
)
def test_a_wrong_subject_is_refused_in_one_phrase(subject: str, fault: str) -> None:
    assert list(subjects.faults(subject)) == [fault]


def test_the_subject_is_the_first_line_that_git_keeps() -> None:
    assert subjects.subject_of("\n# a hint\n Add a page \n\nAdded because.\n") == "Add a page"
    assert subjects.subject_of("# ------------------------ >8 ---\ndiff\n") == ""


def test_the_hook_refuses_a_commit_in_one_line_and_lets_right_ones_pass(clone: Path) -> None:
    assert subjects.install(clone) == ""
    refused = commit(clone, "added a page")
    assert refused.returncode == 1
    assert refused.stderr == "subject: 'added a page': must begin with a capitalised word, without a prefix\n"
    assert commit(clone, "Add a page").returncode == 0


def test_the_hook_lets_checkouts_without_the_check_commit(clone: Path) -> None:
    subjects.install(clone)
    git(clone, "rm", "ci/subjects.py")
    assert commit(clone, "whatever it was.").returncode == 0


def test_a_worktree_gets_the_hook_of_its_clone(clone: Path) -> None:
    git(clone, "worktree", "add", "../other")
    other = clone.parent / "other"
    assert (other / ".git").is_file()
    assert subjects.install(other) == ""
    assert commit(other, "added a page").returncode == 1
    assert commit(clone, "added a page").returncode == 1


def test_a_hook_of_the_user_stays_and_the_line_names_it(clone: Path) -> None:
    hook = clone / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n", encoding="utf-8")
    assert subjects.install(clone) == f"commit-msg hook not installed: {hook} already exists"
    assert hook.read_text(encoding="utf-8") == "#!/bin/sh\n"


def test_our_hook_is_renewed(clone: Path) -> None:
    subjects.install(clone)
    hook = clone / ".git" / "hooks" / "commit-msg"
    whole = hook.read_text(encoding="utf-8")
    hook.write_text(whole.replace("exit 0", "exit 1"), encoding="utf-8")
    assert subjects.install(clone) == ""
    assert hook.read_text(encoding="utf-8") == whole


def test_a_hooks_folder_that_clones_may_share_is_left_alone(clone: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    git(clone, "config", "core.hooksPath", str(shared))
    assert str(shared) in subjects.install(clone)
    assert not shared.exists()


@pytest.mark.parametrize("within", [False, True])
def test_without_a_git_folder_nothing_is_installed(within: bool, clone: Path, tmp_path: Path) -> None:
    copy = (clone if within else tmp_path) / "unpacked"
    copy.mkdir()
    assert subjects.install(copy) == ""
    assert not (clone / ".git" / "hooks" / "commit-msg").exists()


def test_where_git_is_missing_nothing_is_installed(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert subjects.install(clone) == ""
    assert subjects.new_commits("", clone) == []


def names(found: list[tuple[str, str]]) -> list[str]:
    return [subject for _, subject in found]


def test_new_commits_are_those_that_main_lacks_without_merges(clone: Path) -> None:
    git(clone, "switch", "-c", "side")
    commit(clone, "Add a")
    git(clone, "switch", "main")
    commit(clone, "Add b")
    git(clone, "merge", "--no-edit", "side")
    base = git(clone, "rev-parse", "HEAD~2").stdout.strip()
    assert sorted(names(subjects.new_commits(base, clone))) == ["Add a", "Add b"]
    git(clone, "switch", "side")
    assert names(subjects.new_commits("0" * 40, clone)) == []
    commit(clone, "Add c")
    assert names(subjects.new_commits("", clone)) == ["Add c"]


def test_of_a_shallow_clone_without_an_older_commit_the_newest_is_judged(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(clone, "added a page")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--depth", "1", f"file://{clone}", str(shallow))
    git(shallow, "remote", "remove", "origin")
    monkeypatch.chdir(shallow)
    name = git(shallow, "rev-parse", "--short", "HEAD").stdout.strip()
    assert subjects.main(["new", "0" * 40]) == 1
    assert capsys.readouterr().err == (
        f"{name}: 'added a page': must begin with a capitalised word, without a prefix\n"
    )
    commit(shallow, "Add a page", "--amend")
    assert subjects.main(["new"]) == 0


def test_the_program_says_how_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert subjects.main([]) == 2
    assert capsys.readouterr().err == "usage: python -m ci.subjects FILE | new [BASE] | install\n"


def test_make_installs_the_hook_and_lint_judges_new_commits() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installed = makefile.partition("$(BIN)/.installed:")[2].partition("\n\n")[0]
    assert "-m ci.subjects install" in installed
    assert "-m ci.subjects new" in makefile.partition("\nlint:")[2].partition("\n\n")[0]
