"""``mews manifests sweep``: many runs as a Kubernetes Indexed Job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mews.harness.commands.words import FailingParser, at_least
from mews.harness.errors import BadInputError, unreadable
from mews.kube.system.command import Command, CommandContext

if TYPE_CHECKING:
    from mews.harness.scenario.model import Scenario

SUMMARY = "Write an Indexed Job whose pods run one shard of the seeds each; `mews merge` joins their results."
USAGE = (
    "sweep PATH… --seeds A-B --shards N [--parallelism N] [--jobs N] [--set KEY=VALUE] "
    "[--name NAME] [--namespace NAME] [--image IMAGE] [--backoff-limit-per-index N] [--claim NAME] [--folder DIR]"
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")
_MOST_BYTES = 1024 * 1024
"""What a ConfigMap may hold."""


def run(arguments: Sequence[str], context: CommandContext) -> int:
    """Return the command.

    Raises BadInputError; ValueError for bad arguments.
    """
    parser = FailingParser("manifests sweep")
    parser.add_argument("paths", nargs="+", type=Path)
    for name, default in (
        ("seeds", None),
        ("image", "mews.local/components:latest"),
        ("claim", None),
        ("folder", None),
    ):
        parser.add_argument(f"--{name}", default=default)
    for name, word in (("name", "mews-sweep"), ("namespace", "default")):
        parser.add_argument(f"--{name}", default=word)
    parser.add_argument("--shards", type=at_least(1), required=True)
    parser.add_argument("--parallelism", type=at_least(1))
    parser.add_argument("--jobs", type=at_least(1), default=1)
    parser.add_argument("--backoff-limit-per-index", type=at_least(0), default=3)
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args(arguments)
    for option, name in {"--name": given.name, "--namespace": given.namespace, "--claim": given.claim}.items():
        if name is not None and not _NAME.fullmatch(name):
            raise BadInputError(f"{option} {name}: must be small letters, digits and '-', at most 52")
    if not given.image or given.image.split() != [given.image]:
        raise BadInputError(f"--image {given.image!r}: must be the name of an image")

    from mews.harness.commands.run import load
    from mews.harness.manifests.stack import as_yaml
    from mews.harness.manifests.sweep import SweepSpec, sweep_objects
    from mews.harness.options import seeds_of

    if given.folder is not None and not given.folder.startswith("/"):
        raise BadInputError(f"--folder {given.folder}: must be an absolute path, because pods mount it")
    seeds = None if given.seeds is None else seeds_of(given.seeds)
    scenarios = load(given.paths, given.set)
    runs = len(scenarios) * (1 if seeds is None else len(seeds))
    if given.shards > runs:
        raise BadInputError(f"--shards {given.shards}: these are {runs} runs: must be at most as many")
    options = [word for text in given.set for word in ("--set", text)]
    options += [] if given.seeds is None else ["--seeds", given.seeds]
    options += ["--jobs", str(given.jobs)] if given.jobs > 1 else []
    spec = SweepSpec(
        name=given.name,
        namespace=given.namespace,
        image=given.image,
        files=_files(scenarios),
        scenarios=[_path(scenario).name for scenario in scenarios],
        words=options,
        shards=given.shards,
        parallelism=min(given.parallelism or given.shards, given.shards),
        backoff_per_index=given.backoff_limit_per_index,
        claim=given.claim,
        folder=given.folder,
    )
    context.write(as_yaml(sweep_objects(spec)))
    return 0


def _path(scenario: Scenario) -> Path:
    assert scenario.path is not None, "it was read from a file"
    return Path(scenario.path)


def _files(scenarios: Sequence[Scenario]) -> Mapping[str, str]:
    """Name -> text of the scenarios and of the traces and inventories that they name.

    Raises BadInputError for what cannot lie beside them in one folder.
    """
    files: dict[str, tuple[Path, str]] = {}
    for scenario in scenarios:
        for path in _named(scenario):
            text = _text(path)
            known = files.setdefault(path.name, (path, text))
            if known[1] != text:
                raise BadInputError(f"{path}: {known[0]} has the same name; all files of a sweep share one folder")
    total = sum(len(text.encode()) for _, text in files.values())
    if total > _MOST_BYTES:
        raise BadInputError(f"the sweep's files are {total} bytes: a ConfigMap holds {_MOST_BYTES}")
    return {name: text for name, (_, text) in files.items()}


def _named(scenario: Scenario) -> Iterator[Path]:
    from mews.harness.package import room

    path = _path(scenario)
    yield path
    trace = None if scenario.workload is None else scenario.workload.trace
    given = scenario.hardware
    hardware = given if isinstance(given, str) else given.get("file")
    for named in (trace, hardware, *map(str, scenario.included)):
        if named is None:
            continue
        file = Path(named) if Path(named).is_absolute() else path.parent / named
        if not file.is_file() or file.is_relative_to(room("fixtures")):
            continue  # an inventory that comes with Mews, as the image has it
        if file.absolute().parent != path.absolute().parent:
            raise BadInputError(f"{path}: {file}: must be in the scenario's folder, because pods get only that folder")
        yield file


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(unreadable(path, error)) from None


COMMAND = Command(
    "manifests sweep",
    SUMMARY,
    run,
    USAGE,
    options={
        "--seeds A-B": "run the sweep over these seeds",
        "--shards N": "divide the seeds among this many pods",
        "--parallelism N": "run this many pods at a time; default: all",
        "--jobs N": "run this many scenarios at a time in each pod",
        "--set KEY=VALUE": "override a value of the scenarios; may be repeated",
        "--name NAME": "name the Job; default: mews-sweep",
        "--namespace NAME": "create it in this namespace; default: default",
        "--image IMAGE": "use this image for Mews' components",
        "--backoff-limit-per-index N": "retry a pod that died this many times; default: 3",
        "--claim NAME": "write results to this PersistentVolumeClaim",
        "--folder DIR": "write results to this folder of the nodes instead of a claim",
    },
    examples=("mews manifests sweep scenarios/07-race-for-the-last.yaml --seeds 1-100 --shards 4 --claim results",),
)
