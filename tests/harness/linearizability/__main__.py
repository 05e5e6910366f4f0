"""``python -m tests.harness.linearizability``: of each planted fault, the share that the checker finds."""

import json
import sys

from tests.harness.linearizability.planted import PLANTED, found

HISTORIES = 500

for name, plants in PLANTED.items():
    share = found(plants, HISTORIES) / HISTORIES
    sys.stdout.write(json.dumps({"bench": f"linearizability: {name}", "value": share, "unit": "found"}) + "\n")
