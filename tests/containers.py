"""A real image for tests, made from nothing but a program that is linked statically: no registry is asked.

Needs the Docker engine of this machine and a C compiler; ``image_lacks`` says what is not there.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from mews.kube.emulated.kubelet.engine.client import OWNER_LABEL
from mews.kube.emulated.kubelet.errors import EngineUnavailableError

PROGRAM = r"""
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void leave(int number) { (void)number; if (write(1, "leaves\n", 7)) {} _exit(7); }

static int show(const char *path) {
  FILE *file = fopen(path, "r");
  int c;
  if (!file) return 4;
  while ((c = getc(file)) != EOF) putchar(c);
  return 0;
}

/* wait: until TERM; stubborn: until KILL; whisper: closes its output before it ends */
int main(int argc, char **argv) {
  const char *verb = argc > 1 ? argv[1] : "show", *operand = argc > 2 ? argv[2] : "";
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!strcmp(verb, "show") || !strcmp(verb, "wait")) {
    const char *visible = getenv("NVIDIA_VISIBLE_DEVICES");
    DIR *folder = opendir("/dev");
    struct dirent *entry;
    printf("visible %s\n", visible ? visible : "none");
    while (folder && (entry = readdir(folder)))
      if (!strncmp(entry->d_name, "nvidia", 6)) printf("device %s\n", entry->d_name);
  }
  if (!strcmp(verb, "wait")) { signal(SIGTERM, leave); puts("waits"); for (;;) pause(); }
  if (!strcmp(verb, "stubborn")) { signal(SIGTERM, SIG_IGN); puts("waits"); for (;;) pause(); }
  if (!strcmp(verb, "whisper")) { puts("quiet"); fflush(stdout); close(0); close(1); close(2); sleep(1); return 6; }
  if (!strcmp(verb, "cat")) { int c; while ((c = getchar()) != EOF) putchar(c); }
  if (!strcmp(verb, "terminal")) printf("terminal %d\n", isatty(0) && isatty(1));
  if (!strcmp(verb, "file")) return show(operand);
  if (!strcmp(verb, "env")) printf("%s\n", getenv(operand) ? getenv(operand) : "");
  if (!strcmp(verb, "exit")) { fputs("fails\n", stderr); return atoi(operand); }
  return 0;
}
"""


@cache
def image_lacks() -> str:
    """Why no image can be made or run here, "" where one can."""
    try:
        from mews.kube.emulated.kubelet.engine.client import check_engine

        check_engine()
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed"
    except EngineUnavailableError as error:
        return str(error)
    return "" if shutil.which("gcc") else "no gcc to build a static program with"


@contextmanager
def built_image(folder: Path) -> Iterator[str]:
    """The reference of a fresh image, which is removed afterwards; skips the test where there can be none."""
    lacking = image_lacks()
    if lacking:
        pytest.skip(lacking)
    import docker

    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM)
    done = subprocess.run(["gcc", "-static", "-o", program, source], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"gcc -static: {done.stderr.strip().splitlines()[-1]}")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(program, "program")
    api = docker.APIClient(version="auto")
    name = f"mews.local/test-{uuid.uuid4().hex[:12]}"
    try:
        changes = ['ENTRYPOINT ["/program"]', "ENV GIVEN=image", "ENV PATH=/"]
        api.import_image_from_data(packed.getvalue(), repository=name, tag="1", changes=changes)
        yield f"{name}:1"
        api.remove_image(f"{name}:1", force=True)
    finally:
        api.close()


def containers_of_owner(owner: str) -> list[str]:
    """The engine's containers of that owner."""
    import docker

    api = docker.APIClient(version="auto")
    try:
        return [found["Id"] for found in api.containers(all=True, filters={"label": f"{OWNER_LABEL}={owner}"})]
    finally:
        api.close()
