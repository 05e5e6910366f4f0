"""Whom the clients of one run trust: the authority of its certificates, and its API's own where that has one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from mews.certificates import cluster_certificates_in, make_cluster_certificates
from mews.harness.options import ServingOptions
from mews.kube.clock import Clock
from mews.own_files import write_own


class RunTrust:
    """``certificates`` name files in a folder of their own below the run's, which nobody else may enter; None where all
    of it is served in plain HTTP. ``file`` becomes the one file that every client of the run needs; ``nodes`` are
    names and addresses of nodes. ``certificates`` are the servers' of the run, ``cluster`` those of its Kubernetes."""

    def __init__(
        self, folder: Path, file: Path, serving: ServingOptions, clock: Clock, *, nodes: Iterable[str] = ()
    ) -> None:
        self._folder = folder / "tls"
        self._file = file
        self._serving = serving
        self._clock = clock
        self._written = False
        self._nodes = tuple(nodes)
        self.cluster = None if serving.insecure else cluster_certificates_in(self._folder)
        self.certificates = None if self.cluster is None else self.cluster.server

    @property
    def ca(self) -> str | None:
        """``ca`` of ready.json: the file, None where nothing of the run is served over TLS."""
        return str(self._file) if self._written else None

    def process_options(self, plain: str) -> tuple[str, ...]:
        """Return how the processes of chassis and hosts are told to serve; ``plain``: their option for plain HTTP."""
        hosts = [word for name in self._serving.allow_hosts for word in ("--allow-host", name)]
        made = self.certificates
        if made is None:
            return (*hosts, plain)
        files = {"--control-certificate": made.certificate, "--control-key": made.key, "--ca": made.authority}
        return (*hosts, *(word for option, file in files.items() for word in (option, str(file))))

    async def make(self) -> None:
        """Make the certificates, in a thread: it takes a tenth of a second."""
        if self.certificates is not None:
            self._folder.mkdir(mode=0o700)
            names, now_s = self._serving.allow_hosts, self._clock.now()
            await asyncio.to_thread(make_cluster_certificates, self._folder, now_s, names, nodes=self._nodes)

    def write(self, of_api: str | None) -> None:
        """Write the file: the run's own authority, and the API's where it is another one."""
        own = None if self.certificates is None else self.certificates.authority.read_text(encoding="ascii")
        trusted = [text for text in dict.fromkeys((own, of_api)) if text is not None]
        if trusted:
            write_own(self._file, "".join(trusted))
            self._written = True

    def remove(self) -> None:
        """Remove the file again."""
        if self._written:
            self._file.unlink(missing_ok=True)
