"""Builds the judges from their Go modules, once, into a cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KUBERNETES = "v1.34.2"
CONTROLLER_RUNTIME = "v0.22.4"
HELM = "v3.19.2"
_BUILD_S = 3600


class NotBuiltError(Exception):
    """Why a judge cannot be had here."""


@dataclass(frozen=True, slots=True)
class ModuleTests:
    """The tests of a package of somebody's module, as they are: they run in the package's own folder."""

    module: str
    version: str
    package: str

    def folder(self) -> Path:
        """The package's folder in Go's module cache.

        Raises NotBuiltError with the reason.
        """
        done = run_go("mod", "download", "-json", f"{self.module}@{self.version}", cwd=HERE)
        return Path(json.loads(done)["Dir"]) / self.package

    def built(self) -> Path:
        """The program.

        Raises NotBuiltError with the reason.
        """
        folder = self.folder()
        out = cache_folder() / f"{folder.name}-{hashlib.sha256(repr(self).encode()).hexdigest()[:12]}.test"
        if not out.is_file():
            run_go("test", "-c", "-vet=off", "-o", str(out.with_suffix(".part")), ".", cwd=folder, flags="")
            out.with_suffix(".part").replace(out)
        return out


@dataclass(frozen=True, slots=True)
class ModulePrograms:
    """Programs of somebody's module as its authors build them: in its folder, by its own ``go.mod`` and ``go.sum``.
    ``programs``: name -> package. Modules below it that it has ``nested`` are published apart."""

    module: str
    version: str
    programs: Mapping[str, str]
    nested: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    cgo: bool = False

    def source(self) -> Path:
        """The module's folder: its charts and manifests, too.

        Raises NotBuiltError with the reason.
        """
        return ModuleTests(self.module, self.version, "").folder()

    def command(self) -> str:
        """What fetches the module, for whoever reads why a test was skipped."""
        return f"go mod download {self.module}@{self.version}"

    def built(self) -> Path:
        """The folder of the programs, built where they are not there yet.

        Raises NotBuiltError with the reason.
        """
        key = hashlib.sha256(repr(self).encode()).hexdigest()[:12]
        out = cache_folder() / f"{Path(self.module).name}-{self.version}-{key}"
        lacking = [name for name in self.programs if not (out / name).is_file()]
        if not lacking:
            return out
        with contextlib.ExitStack() as stack:
            folder, flags = self.source(), "-mod=readonly"
            if self.nested:
                folder, flags = stack.enter_context(self._joined()), "-mod=mod"
            for name in lacking:
                words = ("build", "-ldflags", " ".join(("-s -w", *self.flags)), "-o", str(out / f"{name}.part"))
                run_go(*words, self.programs[name], cwd=folder, flags=flags, cgo=self.cgo)
                (out / f"{name}.part").replace(out / name)
        return out

    @contextlib.contextmanager
    def _joined(self) -> Iterator[Path]:
        """A copy of the module that takes what it has nested from where that is published."""
        with tempfile.TemporaryDirectory(prefix="mews-judge-") as folder:
            copied = Path(shutil.copytree(self.source(), Path(folder) / "module", copy_function=shutil.copyfile))
            for path in (copied, *(path for path in copied.rglob("*") if path.is_dir())):
                path.chmod(0o755)
            for name in self.nested:
                run_go("mod", "edit", f"-replace={name}={name}@{self.version}", cwd=copied)
            yield copied


def helm() -> Path:
    """Helm's own program, from its module.

    Raises NotBuiltError with the reason.
    """
    return ModulePrograms("helm.sh/helm/v3", HELM, {"helm": "./cmd/helm"}).built() / "helm"


def go_environment(flags: str = "-mod=mod", *, cgo: bool = False) -> dict[str, str]:
    """Of a call of Go that looks at nothing but its own module; ``cgo``: with C in it."""
    return {**os.environ, "CGO_ENABLED": str(int(cgo)), "GOFLAGS": flags, "GOWORK": "off"}


def run_go(*words: str, cwd: Path, flags: str = "-mod=mod", cgo: bool = False) -> str:
    """What a call of Go prints.

    Raises NotBuiltError with the reason.
    """
    go = shutil.which("go")
    if go is None:
        raise NotBuiltError("go is not on PATH")
    cache_folder().mkdir(parents=True, exist_ok=True)
    env = go_environment(flags, cgo=cgo)
    done = subprocess.run([go, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=_BUILD_S)
    if done.returncode != 0:
        raise NotBuiltError(f"go {words[0]}: {(done.stderr.strip().splitlines() or ['it said nothing'])[-1]}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Judge:
    """A program: its module's folder here (``go.mod`` and ``go.sum`` with what it is made of), and how it is built
    there; ``{out}`` is the file."""

    name: str
    folder: Path
    command: Sequence[str]

    def built(self) -> Path:
        """The program, built where it is not there yet.

        Raises NotBuiltError with the reason.
        """
        out = cache_folder() / f"{self.name}-{self._key()}"
        if out.is_file():
            return out
        with tempfile.TemporaryDirectory(prefix="mews-judge-") as folder:
            copied = Path(shutil.copytree(self.folder, Path(folder) / "module"))
            part = Path(folder) / "program"
            try:
                run_go(*(word.replace("{out}", str(part)) for word in self.command), cwd=copied)
            except NotBuiltError as error:
                raise NotBuiltError(f"{self.name} cannot be built: {error}") from None
            shutil.move(part, out.with_suffix(".part"))
        out.with_suffix(".part").replace(out)
        return out

    def _key(self) -> str:
        told = hashlib.sha256(repr(tuple(self.command)).encode())
        for file in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            told.update(file.read_bytes())
        return told.hexdigest()[:12]


def cache_folder() -> Path:
    """Where what is built is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mews" / "judges"


def _test_binary(package: str, *flags: str) -> tuple[str, ...]:
    return ("test", "-c", "-vet=off", *flags, "-o", "{out}", package)


_VERSION = f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES}"
E2E = Judge("e2e.test", HERE / "module", _test_binary("k8s.io/kubernetes/test/e2e", "-ldflags", _VERSION))

DEVICE_PLUGIN = Judge(
    "sample-device-plugin",
    HERE / "module",
    ("build", "-ldflags", "-s -w", "-o", "{out}", "k8s.io/kubernetes/test/images/sample-device-plugin"),
)
"""The device plugin of the suite's image of that name."""

OPERATOR = Judge("operator.test", HERE / "operator", _test_binary("./internal/controller"))
CLIENT = ModuleTests("sigs.k8s.io/controller-runtime", CONTROLLER_RUNTIME, "pkg/client")
CACHE = ModuleTests("sigs.k8s.io/controller-runtime", CONTROLLER_RUNTIME, "pkg/cache")

TRAINING = "github.com/kubeflow/training-operator"
TRAINING_OPERATOR = ModulePrograms(TRAINING, "v1.9.3", {"manager": "./cmd/training-operator.v1"})
