"""Every command that a page shows, typed into the installed package outside the repository, page by page.

A page's commands run in their order, in one folder; what stays in the foreground serves until the page ends. What
cannot be typed as it is stands in a block below ``<!-- needs: … -->`` (``NEEDS``): an unmarked block whose commands do
not all run fails. Commands of a marked block that need nothing of it run with the others; those of ``kind`` and
``control-plane`` must say in one line what is missing, and run in their tier.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.package.conftest import ROOT
from tests.package.environment import Environment

PAGES = sorted(
    (
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "scenarios" / "README.md",
    )
)

NEEDS = {
    "checkout": "a clone of the repository",
    "control-plane": "etcd and kube-apiserver",
    "docker": "a Docker engine",
    "index": "a package index",
    "kind": "a kind cluster",
    "programs": "programs of others, such as kubectl, curl or lspci",
    "yours": "what the reader fills in: files, addresses, names",
}
"""What a block may be marked with -> what its commands need beyond the installed package."""

BLOCK = re.compile(r"(?:^<!-- needs: ([a-z, -]+) -->\n)?^```([a-z]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELLS = ("", "console", "sh", "bash", "shell")
INSTALLED = re.compile(r"pip install '?falcon-mews(\[[a-z,]+\])?'?( kubernetes)?")
"""What has been done before a page begins."""
TYPED = re.compile(
    r"(?:[A-Z_]+=\S* )*(?:mews|python3?|pip|make|pytest|kubectl|docker|curl|go|git|export|setup-envtest) \S"
)
"""What is a command in a block that marks none by ``$``."""

OURS = re.compile(r"(?:[A-Z_]+=\S+ )*(?:mews|python -m mews\.[\w.]+|pytest) .+")
PLACEHOLDER = re.compile(
    r"…|\b(PATH|FILE|FOLDER|DIR|URL|NAME|ROOT|TRACE|COMMAND)\b(?!=)|\||https://box|box/|--scenario$|registry\.example|/\.kube/config|\.\.\."
)
BARE = ("mews demo", "mews down", "mews up", "mews telemetry")
FOREGROUND = ("mews up", "mews serve")
FOREIGN_PORT = re.compile(r"127\.0\.0\.1:(\d+)|--api-port (\d+)")

INSTEAD = {
    # all shipped scenarios have tests of their own (tests/harness/scenario), in which they run
    "mews run scenarios/ --seeds 1-20 --junit results.xml": "mews run demo --seeds 1-20 --junit results.xml",
    "mews env HOST": "mews env --help",
    "mews doctor --for kind": "mews doctor --for virtual",  # kind may be missing here
    "mews live status": "mews live status --help",
    # a minute and a half each at the speed of the page
    "mews serve --hardware fixtures/hardware/testbed.yaml --listen 127.0.0.1:8099 --speed 10 &": (
        "mews serve --hardware fixtures/hardware/testbed.yaml --listen 127.0.0.1:8099 --speed 100 &"
    ),
    # what the shell makes of the stars are files of a checkout
    "mews diff-clusters scenarios/demo.yaml scenarios/0*.yaml scenarios/1*.yaml scenarios/2*.yaml"
    " --clusters embedded,kind --keep --speed 20": (
        "mews diff-clusters scenarios/demo.yaml --clusters embedded,kind --speed 20"
    ),
    # the page's `mews up` is one in prose
    "mews nvidia-smi --host host-1": "mews nvidia-smi --hardware demo --host host-1",
    # likewise: they have tests of their own (tests/harness/commands)
    "mews telemetry": "mews telemetry --help",
    "mews telemetry all=none": "mews telemetry --help",
    "mews telemetry --device 000100 temperature=92 power=180.5 utilization=70 sm_clock=600 memory_clock=800": (
        "mews telemetry --help"
    ),
    "mews telemetry --device 000100 xid=63 ecc_corrected=5 ecc_uncorrected=1": "mews telemetry --help",
    # needs the example package, which tests of its own install (tests/harness/extending)
    "mews run docs/example-package/dialect.yaml": "mews run scenarios/demo.yaml",
    # minutes of a grid of experiments, which has tests of its own; the plots need an extra
    "mews experiment kod2 --json k.json --markdown k.md --plots .": "mews experiment --list",
    # likewise, minutes each; smaller forms of all are in tests/systems
    "mews experiment attach-before-bind --out DIR": "mews experiment --list",
    "mews experiment attach-before-bind-schedulers": "mews experiment --list",
    # acts on a proxy that stands before somebody's own cluster
    "mews fault add --name proxy frozen-api expires_s=30": "mews fault --help",
    # stands until somebody lets it go on; it has tests of its own (tests/harness/commands/test_halting.py)
    'mews run demo --break-at "it runs"': "mews run --help",
    "mews nvidia-smi --name run": "mews nvidia-smi --help",
    "mews experiment kubecomp-fig8": "mews experiment --list",
    "mews experiment kubecomp-fig9": "mews experiment --list",
    "mews experiment kubecomp-fig10": "mews experiment --list",
    "mews experiment kubecomp-fig11": "mews experiment --list",
    "mews experiment kubecomp-fig12": "mews experiment --list",
    "mews experiment kubecomp-fig13": "mews experiment --list",
    "mews experiment kubecomp-table3": "mews experiment --list",
    "mews experiment kubecomp-overhead": "mews experiment --list",
    "mews experiment kubecomp-complexity": "mews experiment --list",
    "mews experiment kod2-fig4": "mews experiment --list",
    "mews experiment kod2-fig7": "mews experiment --list",
    "mews experiment kod2-fig8": "mews experiment --list",
    "mews experiment gpushare-sharing": "mews experiment --list",
    "mews experiment koordinator-links": "mews experiment --list",
    "mews experiment koordinator-fraction": "mews experiment --list",
    "mews experiment kod2": "mews experiment --list",
    "mews experiment NAME --out DIR": "mews experiment --list",
    # it stands before a container runtime for as long as that lives
    "python -m mews.kube.runtimehook --runtime /run/containerd/containerd.sock --listen /run/koordlet/cri.sock"
    " --hooks /run/koordlet/koordlet.sock": "python -m mews.kube.runtimehook --help",
}
"""What would take minutes, or needs what the page says in words -> what is typed in its place."""

REAL = re.compile(r"--clusters? \S*(kind|control-plane|kubeconfig)|--(scheduler|controllers) real|^mews diff-clusters")
LENT = ("KUBEBUILDER_ASSETS", "MEWS_KIND_NODE_IMAGE", "MEWS_BASE_IMAGE", "MEWS_COMPONENT_IMAGE")
"""Where a tier finds what it needs."""
TIERS = ("kind", "control-plane")
"""What needs programs that this environment has not: exit code 3, and one line that says so."""

OTHER_CODES = {
    "mews conform http://127.0.0.1:8099 --allow-changes --device 000C00": 1,  # the page shows that it does not conform
    "mews reproduce gpushare-scheduler-extender-220 --with-bug run gpushare/04-inference": 1,  # the bug is there
    "mews run bug.yaml": 1,  # the page shows that the bug is there
    "mews fault add --name lab --chassis A never-trains": 2,  # the page's `mews up --name lab` needs a control plane
    "mews inspect gpushare --name main -d": 2,  # no `mews up --name main` runs
    "python -m mews.systems.koordinator scheduler": 2,  # no kubeconfig says where its API is
    "mews down": 2,  # what the page brought up needs programs that are not there
}


@dataclass(frozen=True)
class Block:
    """A fenced block with commands: what it is marked with, and its commands as they are typed."""

    needs: frozenset[str]
    typed: tuple[str, ...]


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page that show commands."""
    for needs, language, content in BLOCK.findall(text):
        lines = content.replace("\\\n", " ").splitlines() if language in SHELLS else []
        marked = any(line.startswith("$ ") for line in lines)
        shown = [line for line in lines if (line.startswith("$ ") if marked else TYPED.match(line))]
        if shown:
            bare = tuple(re.sub(r"\s+#.*$", "", line.removeprefix("$ ")).strip() for line in shown)
            yield Block(frozenset(filter(None, re.split(r"[, ]+", needs))), bare)


def is_run(typed: str) -> bool:
    """Whether the daily test types that command as it is."""
    ours = typed.partition(" | ")[0].strip()
    if INSTALLED.fullmatch(typed):
        return True
    return bool(OURS.fullmatch(ours) or ours in BARE) and not PLACEHOLDER.search(ours) and not REAL.search(ours)


def not_run(text: str) -> Iterator[str]:
    """Commands of a page that nothing runs and no mark excuses; marks that say nothing."""
    for block in blocks(text):
        left = [typed for typed in block.typed if not is_run(typed)]
        if block.needs - set(NEEDS):
            yield f"needs: {', '.join(sorted(block.needs))}: must be of {', '.join(NEEDS)}"
        elif left and not block.needs:
            yield f"{left[0]}: is not run, and its block is not marked <!-- needs: … -->"
        elif block.needs and not left:
            yield f"{block.typed[0]}: all of its block is run, but it is marked"
        for typed in left:
            if REAL.search(typed) and not block.needs & {*TIERS, "yours"}:
                yield f"{typed}: its block must be marked <!-- needs: kind --> or control-plane"


def commands(page: Path) -> Iterator[str]:
    """What a page shows, comments and what is only a name left out; inline ones need an argument."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            typed = re.sub(r"\s+#.*$", "", line.removeprefix("$ ")).partition(" | ")[0].strip()
            if OURS.fullmatch(typed) or typed in BARE:
                yield typed
    for typed in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if OURS.fullmatch(typed) and len(typed.split()) > 2:
            yield typed


def runnable(page: Path) -> list[str]:
    """Those that can be typed as they are, each once, in their order."""
    return [typed for typed in dict.fromkeys(commands(page)) if not PLACEHOLDER.search(typed)]


def of_tier(page: Path, tier: str) -> list[str]:
    """Those that need what the tier has, but for the ones that show what happens without."""
    needs = {"kind": r"\bkind\b", "control-plane": r"control-plane|^mews diff-clusters (?!.*kind)"}[tier]
    real = [typed for typed in runnable(page) if REAL.search(typed) and re.search(needs, typed)]
    return [typed for typed in real if not typed.startswith(("PATH=", *FOREGROUND))]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Shell:
    """Runs what a page shows; ports that a page names become free ones, files in /tmp its own."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        self._environment = Environment(environment.root, folder)
        # The kubelets' sockets lie below it, and their paths must be short
        self._runtime = tempfile.TemporaryDirectory(prefix="mews-docs-")
        self._ports: dict[str, str] = {}
        self._serving: list[subprocess.Popen[str]] = []

    def type(self, shown: str, *, tier: str = "") -> None:
        """Run one command as it must go; ``tier``: what it needs is there, with the machine's own programs."""
        words = shlex.split(self._own(INSTEAD.get(shown, shown).removesuffix("&")))
        variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word)) | self._own_state()
        if tier:
            variables |= {name: os.environ[name] for name in LENT if name in os.environ}
            variables["PATH"] += f":{os.environ['PATH']}"
        argv = [word for word in words if not re.match(r"[A-Z_]+=", word)]
        argv = ["python", "-m", *argv] if argv[0] == "pytest" else argv
        if shown.startswith(FOREGROUND) and not REAL.search(shown):
            self._serve(argv, variables)
            return
        done = self._environment.run(*argv, timeout_s=900.0 if tier else 120.0, **variables)
        allowed = 3 if REAL.search(shown) and not tier else OTHER_CODES.get(shown, 0)
        said = f"{shown}: exit {done.returncode}, not {allowed}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        assert done.returncode == allowed, said
        assert "Traceback" not in done.stderr, said
        if allowed == 3:
            assert len(done.stderr.splitlines()) == 1, said

    def end(self) -> None:
        """End what still serves; each must end well."""
        for process in self._serving:
            process.send_signal(signal.SIGTERM)
        codes = [(process.args, process.wait(timeout=60)) for process in self._serving]
        self._runtime.cleanup()
        assert [code for _, code in codes if code != 0] == [], codes

    def _own_state(self) -> dict[str, str]:
        return {"PATH": self._environment.variables["PATH"], "XDG_RUNTIME_DIR": self._runtime.name}

    def _own(self, shown: str) -> str:
        for port in (one or other for one, other in FOREIGN_PORT.findall(shown)):
            self._ports.setdefault(port, str(free_port()))
            shown = shown.replace(port, self._ports[port])
        return shown.replace("/tmp/", f"{self._runtime.name}/")

    def _serve(self, argv: list[str], variables: dict[str, str]) -> None:
        """Start it, and go on when it says that it serves."""
        log = self._environment.folder / f"serving-{len(self._serving)}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                argv,
                cwd=self._environment.folder,
                env={**self._environment.variables, **variables},
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self._serving.append(process)
        deadline = time.monotonic() + 90
        while not re.search(r"^(up: |.*https?://)", log.read_text(), re.MULTILINE):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            process_wait(process)


def process_wait(process: subprocess.Popen[str]) -> None:
    """A moment, or until it ends."""
    try:
        process.wait(timeout=0.1)
    except subprocess.TimeoutExpired:
        return


@pytest.fixture
def shell(installed: Environment, tmp_path: Path) -> Iterator[Shell]:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    made = Shell(installed, tmp_path)
    yield made
    made.end()


def test_the_pages_show_commands():
    assert len(runnable(ROOT / "README.md")) >= 8
    assert set(INSTEAD) | set(OTHER_CODES) <= {typed for page in PAGES for typed in commands(page)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_block_is_run_or_says_what_it_needs(page: Path):
    assert list(not_run(page.read_text(encoding="utf-8"))) == []


def test_a_block_that_nothing_runs_is_seen():
    def found(text: str) -> list[str]:
        return list(not_run(text))

    assert found("```\n$ mews run demo\npassed\n```\n") == []
    assert "is not run" in found("```console\n$ kubectl get pods\n```\n")[0]
    assert "is not run" in found("text\n\n```\nmake demo     # see it\n```\n")[0]
    assert found("<!-- needs: programs -->\n```\n$ kubectl get pods\n```\n") == []
    assert "must be of" in found("<!-- needs: luck -->\n```\n$ kubectl get pods\n```\n")[0]
    assert "but it is marked" in found("<!-- needs: kind -->\n```\n$ mews run demo\n```\n")[0]
    assert "or control-plane" in found("<!-- needs: programs -->\n```\n$ mews run demo --cluster kind\n```\n")[0]


@pytest.mark.wall
@pytest.mark.parametrize(
    "page", [page for page in PAGES if runnable(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_a_page_shows_works_in_the_installed_package(shell: Shell, page: Path):
    for typed in runnable(page):
        shell.type(typed)


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.parametrize(
    "page", [page for page in PAGES if of_tier(page, "control-plane")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_a_page_shows_of_a_real_control_plane_works(shell: Shell, page: Path):
    if not os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("KUBEBUILDER_ASSETS is not set: etcd and kube-apiserver are not here")
    for typed in of_tier(page, "control-plane"):
        shell.type(typed, tier="control-plane")


@pytest.mark.kind
@pytest.mark.parametrize(
    "page", [page for page in PAGES if of_tier(page, "kind")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_a_page_shows_of_kind_works(shell: Shell, page: Path):
    for typed in of_tier(page, "kind"):
        shell.type(typed, tier="kind")
