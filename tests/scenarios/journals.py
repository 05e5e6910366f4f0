"""Run as a program, with a seed and ``forward`` or ``backward``: every shipped scenario in virtual time, in that order,
one JSON object {name: [verdict, reason, sha256, XIDs, bound of law 8, length]}."""

import hashlib
import json
import logging
import sys
from pathlib import Path
from typing import Any

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import find_scenarios, load_scenario

FOLDER = Path(mews.scenarios.__file__).parent


def outcome(path: Path, seed: int) -> list[Any]:
    scenario = load_scenario(path)
    run = Engine(RunOptions()).run(scenario, seed)
    journal = "".join(line.as_json() + "\n" for line in run.lines)
    xids = sum((line.layer, line.event) == ("host", "xid") for line in run.lines)
    bound_s, length_s = scenario.bounds.get("scheduled_s"), max((line.t for line in run.lines), default=0.0)
    digest = hashlib.sha256(journal.encode()).hexdigest()
    return [run.result.verdict, run.result.reason, digest, xids, bound_s, length_s]


def main() -> None:
    logging.getLogger("mews").addHandler(logging.NullHandler())
    logging.getLogger("mews").propagate = False
    seed, order = int(sys.argv[1]), {"forward": 1, "backward": -1}[sys.argv[2]]
    paths = find_scenarios([FOLDER])[::order]
    json.dump({str(path.relative_to(FOLDER)): outcome(path, seed) for path in paths}, sys.stdout)


if __name__ == "__main__":
    main()
