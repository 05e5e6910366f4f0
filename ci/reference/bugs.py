"""The bugs of the museum: a table of all, and a page for each, from their data."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci.reference.markdown import code, paragraphs, table
from mews.harness.museum.bug import WORLD, Bug, BugSwitch
from mews.harness.museum.museum import all_bugs
from mews.harness.museum.programs import BugProgram


def page() -> str:
    """Return the table of all bugs, each with a link to its page."""
    rows = [(f"[{bug.name}](bugs/{bug.name}.md)", bug.title, bug.component, _until(bug)) for bug in all_bugs()]
    return paragraphs(
        "# Public bugs",
        "`mews reproduce NAME` runs each of these twice, with the bug and without, and says what differs.",
        table(("name", "bug", "component", "fixed"), rows),
    )


def pages() -> dict[str, Callable[[], str]]:
    """Return a page for each bug, by its place in the site."""
    return {f"reference/bugs/{bug.name}.md": _maker(bug) for bug in all_bugs()}


def _maker(bug: Bug) -> Callable[[], str]:
    return lambda: bug_page(bug)


def bug_page(bug: Bug) -> str:
    """Return the page of one bug."""
    links = ", ".join(f"[{_named(link)}]({link})" for link in bug.links)
    command = f"```\nmews reproduce {bug.name} --out bug\n```"
    return paragraphs(
        f"# {bug.name}",
        f"{bug.title}.",
        f"Component: {bug.component}. Affected: {bug.affected}. Fixed: {_until(bug)}. Reported in {links}.",
        " ".join(bug.mechanism.split()),
        command,
        f"Without the bug {bug.seen.otherwise}. With it the run fails and says: {code(bug.seen.bug)}.",
        *_world(bug),
        *_switch(bug),
    )


def _until(bug: Bug) -> str:
    return bug.fixed or "open"


def _named(link: str) -> str:
    owner, repository, kind, number = link.removeprefix("https://github.com/").split("/")
    return f"{owner}/{repository}{' pull request ' if kind == 'pull' else ' '}#{number}"


def _world(bug: Bug) -> Iterator[str]:
    yield "## The world"
    if bug.scenario:
        yield f"The scenario {code(bug.scenario)} that comes with Mews, with seed {bug.seed}."
        return
    text = (bug.folder / WORLD).read_text(encoding="utf-8").rstrip()
    yield f"Seed {bug.seed} of:"
    yield f"```yaml\n{text}\n```"


def _switch(bug: Bug) -> Iterator[str]:
    if bug.twin is not None:
        yield "## The mistake"
        yield "This change gives one of our components the same mistake:"
        yield _diff(bug.twin)
    elif bug.remedy is not None:
        yield "## The remedy"
        yield "Our component has the same bug as the published one. This change takes it away:"
        yield _diff(bug.remedy)
    elif bug.program is not None:
        yield from _program(bug.program)


def _program(program: BugProgram) -> Iterator[str]:
    yield "## The program"
    named = f"{program.module or 'Kubernetes'}: {program.name}"
    yield f"{named}, unmodified, at {program.bad.version} with the bug and at {program.good.version} without."


def _diff(switch: BugSwitch) -> str:
    if switch.change is None:
        return "\n".join(f"- {code(f'--set {key}={value}')}" for key, value in switch.set.items())
    change = switch.change
    before = [f"-{line}" for line in change.source.strip("\n").splitlines()]
    after = [f"+{line}" for line in change.planted.strip("\n").splitlines()]
    return "\n".join(["```diff", f"--- {change.file}", f"+++ {change.file}", *before, *after, "```"])
