"""Charts of others: how each is installed from its module, with which programs, and what it is to do once.

``charts.yaml`` has them. Nothing of a chart is changed: ``--images`` says which program each of its images is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.upstream.building import HERE, ModulePrograms, helm

FOLDER = HERE / "charts"
WORK = {
    "case/work": {"simulate": {"duration_s": 2, "log": "done\n"}},
    "case/serve": "idle",
    "case/shell": {"process": ["sh"]},
}
"""Images of what the charts are given to do."""
_STEP_S = 300
_LATE_S, _PATIENCE_S, _AGAIN_S = 180.0, 90.0, 2.0


@dataclass(frozen=True, slots=True)
class Chart:
    """A row of ``charts.yaml``."""

    name: str
    module: str
    version: str
    proves: str
    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kustomize: str = ""
    apply: str = ""
    made: str = ""
    helm: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    namespace: str = "default"
    nested: Sequence[str] = ()
    flags: Sequence[str] = ()
    cgo: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    also: Sequence[str] = ()
    job: str = ""
    example: str = ""
    script: str = ""
    done: Sequence[Sequence[str]] = ()
    asks: Sequence[Sequence[str]] = ()
    late: bool = False
    needs: str = ""
    kind: str = "works"

    def programs(self) -> ModulePrograms:
        """What its images are made of."""
        packages = {name: package for found in self.images.values() for name, package in found.items()}
        return ModulePrograms(self.module, self.version, packages, tuple(self.nested), tuple(self.flags), self.cgo)

    def image_rows(self) -> dict[str, Any]:
        """Rows for ``--images``.

        Raises NotBuiltError with the reason.
        """
        folder = self.programs().built()
        more = {"env": dict(self.env)} if self.env else {}
        return {image: {"process": [str(folder / next(iter(found)))], **more} for image, found in self.images.items()}


def charts() -> dict[str, Chart]:
    """All of them, by name."""
    rows = yaml.safe_load((HERE / "charts.yaml").read_text(encoding="utf-8"))
    return {row["name"]: Chart(kind=row.pop("class"), **row) for row in rows}


def images_file(folder: Path, chosen: Sequence[Chart]) -> Path:
    """The file for ``--images``.

    Raises NotBuiltError with the reason.
    """
    rows, known = dict[str, Any](WORK), charts()
    for chart in chosen:
        for each in (*(known[name] for name in chart.also), chart):
            rows |= each.image_rows()
    file = folder / "images.yaml"
    file.write_text(yaml.safe_dump({"images": rows}), encoding="utf-8")
    return file


class Client:
    """Whoever installs: kubectl and helm with nothing but a kubeconfig."""

    def __init__(self, kubeconfig: str, folder: Path) -> None:
        self._folder = folder
        self._env = {"KUBECONFIG": kubeconfig, "PATH": os.environ["PATH"], "HOME": str(folder)}

    def run(self, *words: str, stdin: str | None = None) -> str:
        """What a command prints.

        Raises AssertionError with what it says where it fails.
        """
        done = subprocess.run(words, env=self._env, input=stdin, capture_output=True, text=True, timeout=_STEP_S)
        assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout

    def install(self, chart: Chart) -> None:
        """As its page says, and wait until its pods are ready."""
        source = chart.programs().source()
        if chart.kustomize:
            self.run("kubectl", "apply", "--server-side", "-k", str(source / chart.kustomize))
        elif chart.made:
            self.run("kubectl", "apply", "--server-side", "-f", "-", stdin=self._made(source, chart))
        elif chart.apply:
            self._make_namespace(chart.namespace)
            self.run("kubectl", "apply", "-n", chart.namespace, "-f", str(source / chart.apply))
        else:
            place = _cert_managers_chart(source, self._folder, chart) if chart.name == "cert-manager" else None
            words = ["install", chart.name, str(place or source / chart.helm), "-n", chart.namespace]
            words += [word for key, value in chart.values.items() for word in ("--set", f"{key}={value}")]
            self.run(str(helm()), *words, "--create-namespace", "--wait", "--timeout", "180s")
        for kind in ("deployment", "daemonset"):
            for name in self.run("kubectl", "get", kind, "-n", chart.namespace, "-o", "name").split():
                self.run("kubectl", "rollout", "status", name, "-n", chart.namespace, "--timeout", "180s")

    def _made(self, source: Path, chart: Chart) -> str:
        """What their script makes, with kubectl for the kustomize that it asks for."""
        kustomize = self._folder / "kustomize"
        kustomize.write_text('#!/bin/sh\nshift\nexec kubectl kustomize "$@"\n', encoding="utf-8")
        kustomize.chmod(0o755)
        return self.run("bash", "-c", f'cd "{source}" && bash {chart.made} "{kustomize}"')

    def _make_namespace(self, name: str) -> None:
        made = self.run("kubectl", "create", "namespace", name, "--dry-run=client", "-o", "yaml")
        self.run("kubectl", "apply", "-f", "-", stdin=made)

    def work(self, chart: Chart) -> None:
        """Have it do what it is for."""
        if chart.job:
            self._apply(FOLDER / chart.job, _LATE_S if chart.late else 0.0)
        if chart.example:
            self.run("kubectl", "apply", "-f", str(chart.programs().source() / chart.example))
        if chart.script:
            self._patiently(lambda: self._shell(chart))
        for what, state in chart.done:
            self.run("kubectl", "wait", f"--for={state}", *what.split(), "--timeout", "120s")
        for path, part in chart.asks:
            self._patiently(partial(self._shows, path, part))

    def _shell(self, chart: Chart) -> None:
        self.run("bash", "-ec", f'PATH="{chart.programs().built()}:$PATH"; {chart.script}')

    def _shows(self, path: str, part: str) -> None:
        shown = self.run("kubectl", "get", "--raw", path)
        assert part in shown, (path, shown[:3000])

    def _patiently(self, step: Callable[[], None]) -> None:
        """Again and again, while it fails: what it needs may come later."""
        end = time.monotonic() + _PATIENCE_S
        while True:
            try:
                step()
                return
            except AssertionError:
                if time.monotonic() > end:
                    raise
            time.sleep(_AGAIN_S)

    def _apply(self, file: Path, patience_s: float) -> None:
        """Apply it, if need be again while a webhook does not listen yet."""
        end = time.monotonic() + patience_s
        while True:
            try:
                self.run("kubectl", "apply", "-f", str(file))
                return
            except AssertionError as error:
                early = "failed calling webhook" in str(error) and "connection refused" in str(error)
                if not early or time.monotonic() > end:
                    raise
            time.sleep(_AGAIN_S)


def _cert_managers_chart(source: Path, folder: Path, chart: Chart) -> Path:
    """The chart that cert-manager's make puts together (make/manifests.mk): with a version and the definitions."""
    made = Path(shutil.copytree(source / chart.helm, folder / "cert-manager", copy_function=shutil.copyfile))
    for path in (made, *(path for path in made.rglob("*") if path.is_dir())):
        path.chmod(0o755)
    template = (made / "Chart.template.yaml").read_text(encoding="utf-8")
    text = template.replace("v0.1.0", chart.version).replace("{{IS_PRERELEASE}}", "false")
    (made / "Chart.yaml").write_text(text, encoding="utf-8")
    files = sorted((source / "deploy" / "crds").glob("*.yaml"))
    crds = "\n---\n".join(file.read_text(encoding="utf-8") for file in files)
    whole = f"{{{{- if .Values.installCRDs }}}}\n{crds}\n{{{{- end }}}}\n"
    (made / "templates" / "crds.yaml").write_text(whole, encoding="utf-8")
    return made
