"""What the user may choose for a run, and which choices go together (docs/clusters.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from mews.dialects import DIALECTS
from mews.harness.backends import BACKENDS, DEFAULT_BACKEND, backend_of, backends_that
from mews.harness.errors import BadInputError
from mews.harness.halts import Halt
from mews.names import must_be
from mews.registry import NotRegisteredError

MOST_SEED = 2**63 - 1
MOST_RUNS = 1_000_000
"""Of one command."""


class ServingOptions(Struct, frozen=True):
    """How what we serve on loopback is reached: over TLS by who has the token, or, ``insecure``, in plain HTTP, the API
    by everybody there. ``port``: the API's, 0 takes a free one. ``allow_hosts``: further names that all of it goes
    by. ``host_access``: pods that run in containers may ask for access to this machine (privileged, its namespaces, its
    paths)."""

    insecure: bool = False
    port: int = 0
    allow_hosts: tuple[str, ...] = ()
    host_access: bool = False


class RunOptions(Struct, frozen=True):
    """What the user chose: how scenarios are run, on which cluster.

    ``dialect`` None: as the scenario says; ``timeout_s`` None too. ``kubeconfig`` and ``context`` name the user's own
    cluster; ``keep`` leaves what runs. ``folder`` gets the kubeconfig, logs and files of a wall-clock cluster; without
    one a temporary folder does. ``serving`` is for what we serve ourselves. ``wait`` is what an emulated cluster has
    before it counts as opened: its nodes Ready, or their devices announced, too. ``monitored``: what an emulated
    cluster's systems measure of themselves is for Prometheus to read. ``halt``: where a run in virtual time stops.
    """

    cluster: str = DEFAULT_BACKEND
    time: str = "virtual"
    speed: float = 1.0
    dialect: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    timeout_s: float | None = None
    keep: bool = False
    folder: Path | None = None
    serving: ServingOptions = field(default_factory=ServingOptions)
    wait: Literal["nodes", "devices"] = "devices"
    monitored: bool = False
    halt: Halt | None = None


def time_of(cluster: str, time: str | None) -> str:
    """Return the time to run in.

    Raises BadInputError for a cluster, a time or a pair of them that is none.
    """
    check_choice("--cluster", cluster, tuple(BACKENDS))
    times = backend_of(cluster).times
    if time is None:
        return times[0]
    check_choice("--time", time, ("virtual", "wall"))
    if time not in times:
        allowed = ", ".join(times)
        raise BadInputError(
            f"--time {time}: --cluster {cluster} runs in {allowed} time only; virtual time needs embedded"
        )
    return time


def check_available(cluster: str) -> None:
    """Raise RequirementError for a cluster whose programs are not on this machine."""
    backend_of(cluster).check_available()


def check_choice(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise BadInputError unless the value is one of those."""
    if value not in allowed:
        raise BadInputError(f"{option} {value}: {must_be(value, allowed)}")


def check_dialect(dialect: str | None) -> None:
    """Raise BadInputError for a dialect that there is not; None is the scenario's own."""
    if dialect is None:
        return
    try:
        DIALECTS.find(dialect)
    except NotRegisteredError as error:
        raise BadInputError(f"--dialect {dialect}: {error.reason}") from error


def check_speed(speed: float) -> None:
    """Raise BadInputError unless above 0."""
    if not 0 < speed < float("inf"):
        raise BadInputError(f"--speed {speed:g}: must be above 0")


def check_pace(dialect: str | None, speed: float) -> None:
    """Raise BadInputError for a dialect that there is not, and for a speed that is not above 0."""
    check_dialect(dialect)
    check_speed(speed)


def check_run_options(options: RunOptions, jobs: int) -> None:
    """Raise BadInputError unless these go together, and with that many runs at once: more than one in virtual time
    only, since in wall-clock time they would wait for each other's processors and miss their limits, so that a verdict
    would depend on how many there are."""
    check_speed(options.speed)
    if options.timeout_s is not None and options.timeout_s <= 0:
        raise BadInputError(f"--timeout {options.timeout_s:g}: must be above 0")
    if not backend_of(options.cluster).is_the_users:
        for option, value in {"--kubeconfig": options.kubeconfig, "--context": options.context}.items():
            if value is not None:
                these = " or ".join(backends_that(lambda backend: backend.is_the_users))
                raise BadInputError(f"{option} {value}: only with --cluster {these}, not with {options.cluster}")
    if options.keep and options.time == "virtual":
        raise BadInputError("--keep: virtual time leaves nothing to keep; only with --time wall or another --cluster")
    if options.speed != 1.0 and options.time == "virtual":
        raise BadInputError(
            f"--speed {options.speed:g}: virtual time has no speed; only with --time wall or another --cluster"
        )
    if jobs < 1:
        raise BadInputError(f"--jobs {jobs}: must be at least 1")
    if jobs > 1 and options.time != "virtual":
        raise BadInputError(
            f"--jobs {jobs}: in virtual time only; runs in {options.time} time would slow each other down"
        )


def seeds_wanted(seed: int | None, seeds: str | None) -> Sequence[int] | None:
    """Return those of ``--seed`` and ``--seeds``; None: each scenario's own.

    Raises BadInputError.
    """
    if seed is not None and seeds is not None:
        raise BadInputError(f"--seed {seed} --seeds {seeds}: only one of the two")
    if seed is not None and not 0 <= seed <= MOST_SEED:
        raise BadInputError(f"--seed {seed}: must be from 0 to {MOST_SEED}")
    return seeds_of(seeds) if seeds is not None else None if seed is None else [seed]


def seeds_of(text: str) -> range:
    """``A-B`` with both ends, or one number.

    Raises BadInputError.
    """
    first, dash, last = text.partition("-")
    try:
        low = int(first)
        high = int(last) if dash else low
    except ValueError:
        raise BadInputError(f"--seeds {text}: must be A-B, for example 1-100") from None
    if high < low:
        raise BadInputError(f"--seeds {text}: the first must not be above the last")
    if not (low >= 0 and high <= MOST_SEED):
        raise BadInputError(f"--seeds {text}: must be from 0 to {MOST_SEED}")
    if high - low >= MOST_RUNS:
        raise BadInputError(f"--seeds {text}: these are {high - low + 1}; at most {MOST_RUNS} are allowed")
    return range(low, high + 1)
