"""A release as `.github/workflows/release.yml` makes it, without an upload: ``make release``.

Builds the sdist and a wheel for each machine, checks version, notes and metadata, and prints what would be uploaded.
``--notes`` prints the release notes of the version, ``--recipe`` the conda recipe of what was built; ``--tag TAG``
checks that a tag is that version's.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

from mews import __version__
from mews.project import DISTRIBUTION, REPOSITORY, urls

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "release"
RECIPE = ROOT / "conda" / "recipe.yaml"
KINDS = ("x86_64", "aarch64", "pure")
"""What MEWS_WHEEL names: a wheel of each is uploaded, beside the sdist."""
_MOST_MB = 100
"""What an index takes of one file."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_TARGET = re.compile(r"https?://|#")


class ReleaseError(Exception):
    """What keeps a release from being made, in one line."""


def notes(changelog: str, version: str) -> str:
    """Return the section of that version, without its heading.

    Raises ReleaseError for a version that has none, or an empty one.
    """
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, body = section.partition("\n")
        if re.match(rf"{re.escape(version)}(\s|$)", heading):
            if body.strip():
                return body.strip() + "\n"
            raise ReleaseError(f"CHANGELOG.md: the section of {version} is empty")
    raise ReleaseError(f"CHANGELOG.md: has no section ## {version}")


def check_tag(tag: str, version: str) -> None:
    """Raise ReleaseError unless the tag is that version's."""
    if tag != f"v{version}":
        raise ReleaseError(f"tag {tag}: src/mews/__init__.py has version {version}, whose tag is v{version}")


def build(folder: Path, kinds: tuple[str, ...] = KINDS) -> None:
    """The sdist, and from it a wheel of each kind. Raises ReleaseError."""
    _run([sys.executable, "-m", "build", "--sdist", "--outdir", str(folder), str(ROOT)])
    [sdist] = folder.glob("*.tar.gz")
    for kind in kinds:
        # From the sdist, never from this tree: whoever builds it later has nothing else
        argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(sdist)]
        _run(argv, MEWS_WHEEL=kind)


def _run(argv: list[str], **more: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **more})
    if done.returncode != 0:
        last = ((done.stderr + done.stdout).strip().splitlines() or ["(no message)"])[-1]
        raise ReleaseError(f"{' '.join(argv[2:5])} {more.get('MEWS_WHEEL', '')}: exit code {done.returncode}: {last}")


def metadata_of(file: Path) -> Message:
    """Return the metadata that an index reads."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            return email.message_from_bytes(archive.read(name))
    with tarfile.open(file) as archive:
        [name] = [name for name in archive.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name)]
        opened = archive.extractfile(name)
        assert opened is not None
        return email.message_from_binary_file(opened)


def complaints(file: Path, metadata: Message, version: str) -> Iterator[str]:
    """Yield what an index would refuse, or show wrongly."""
    for key, wanted in (("Name", DISTRIBUTION), ("Version", version), ("License-Expression", "Apache-2.0")):
        if metadata[key] != wanted:
            yield f"{file.name}: {key}: {metadata[key]!r}: must be {wanted}"
    if metadata["Description-Content-Type"] != "text/markdown":
        yield f"{file.name}: Description-Content-Type: {metadata['Description-Content-Type']!r}: must be text/markdown"
    shown = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL") or ())
    if shown != urls():
        yield f"{file.name}: Project-URL: {shown}: must be those of src/mews/project.py"
    page = str(metadata.get_payload())
    if not page.strip():
        yield f"{file.name}: has no description"
    relative = [target for target in _LINK.findall(page) if not _TARGET.match(target)]
    yield from (f"{file.name}: description: {target}: must be an absolute link" for target in relative)
    if file.stat().st_size > _MOST_MB * 1e6:
        yield f"{file.name}: {file.stat().st_size / 1e6:.0f} MB: must be at most {_MOST_MB}"


def missing(folder: Path, version: str, kinds: tuple[str, ...] = KINDS) -> list[str]:
    """Return the files of a release that are not there."""
    name = f"{DISTRIBUTION.replace('-', '_')}-{version}"
    tags = {kind: f"*manylinux*_{kind}" for kind in kinds} | ({"pure": "any"} if "pure" in kinds else {})
    wanted = [f"{name}.tar.gz", *(f"{name}-py3-none-{tag}.whl" for tag in tags.values())]
    return [pattern for pattern in wanted if not list(folder.glob(pattern))]


def check(folder: Path, version: str, kinds: tuple[str, ...] = KINDS) -> list[str]:
    """Return what is wrong with the files of a folder, a line each."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    found = [f"{pattern}: was not built" for pattern in missing(folder, version, kinds)]
    return found + [line for file in files for line in complaints(file, metadata_of(file), version)]


def upload_list(folder: Path) -> Iterator[str]:
    """Yield a line for each file that would be uploaded."""
    for file in sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz")):
        yield f"would upload {file.name}  {file.stat().st_size:,} bytes  sha256:{_sha256(file)}"


def dry_run() -> None:
    """All steps but the upload. Raises ReleaseError."""
    section = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)
    _empty(FOLDER)
    build(FOLDER)
    wrong = check(FOLDER, __version__)
    if wrong:
        raise ReleaseError("\n".join(wrong))
    sys.stdout.write("".join(f"{line}\n" for line in upload_list(FOLDER)))
    sys.stdout.write(f"would publish {len(section.splitlines())} lines of notes as v{__version__}\n")


def feedstock_recipe(recipe: str, sdist: Path, version: str) -> str:
    """Return the conda recipe with the released sdist as its source, in place of the checkout.

    Raises ReleaseError for a recipe without that source.
    """
    address = f"{REPOSITORY}/releases/download/v{version}/{sdist.name}"
    source = f"  url: {address}\n  sha256: {_sha256(sdist)}\n"
    made, replaced = re.subn(r"^  path: \.\.\n", source, recipe, flags=re.MULTILINE)
    if replaced != 1:
        raise ReleaseError(f"{RECIPE.relative_to(ROOT)}: source.path: must be ..")
    return made


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        file.unlink()


def main(arguments: list[str]) -> int:
    """0, or 1 with a line for each thing that is wrong."""
    parser = argparse.ArgumentParser(prog="python -m ci.release", description="Rehearse a release.")
    parser.add_argument("--tag", help="check that this tag is the version's, and exit")
    parser.add_argument("--notes", action="store_true", help="print the release notes of the version, and exit")
    parser.add_argument("--recipe", action="store_true", help="print the conda recipe of the built sdist, and exit")
    parser.add_argument("--check", type=Path, metavar="DIR", help="check the files of this folder, and exit")
    options = parser.parse_args(arguments)
    try:
        if options.tag is not None:
            check_tag(options.tag, __version__)
        elif options.notes:
            sys.stdout.write(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__))
        elif options.recipe:
            sdist = FOLDER / f"{DISTRIBUTION.replace('-', '_')}-{__version__}.tar.gz"
            if not sdist.is_file():
                raise ReleaseError(f"{sdist}: no such file: make release builds it")
            sys.stdout.write(feedstock_recipe(RECIPE.read_text(encoding="utf-8"), sdist, __version__))
        elif options.check is not None:
            if wrong := check(options.check, __version__):
                raise ReleaseError("\n".join(wrong))
        else:
            dry_run()
    except ReleaseError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
