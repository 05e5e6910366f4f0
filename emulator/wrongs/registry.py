"""All wrongs by name, and several of them in front of one chassis."""

from __future__ import annotations

import difflib
import random
import threading
from collections.abc import Callable, Mapping, Sequence

from mews.emulator.wrongs.odd import ODD
from mews.emulator.wrongs.of_cdim import OF_CDIM
from mews.emulator.wrongs.of_fm import OF_FM
from mews.emulator.wrongs.of_listings import OF_LISTINGS
from mews.emulator.wrongs.of_redfish import OF_REDFISH
from mews.emulator.wrongs.of_redfish_tasks import OF_REDFISH_TASKS
from mews.emulator.wrongs.of_tables import OF_TABLES
from mews.emulator.wrongs.over_http import OVER_HTTP
from mews.emulator.wrongs.wrong import Ask, Handler, Stage, Wrong, in_front

WRONGS: Mapping[str, Wrong] = {
    wrong.name: wrong
    for wrong in (*OVER_HTTP, *OF_TABLES, *OF_LISTINGS, *OF_FM, *OF_CDIM, *OF_REDFISH, *OF_REDFISH_TASKS, *ODD)
}


def find_wrongs(names: Sequence[str], dialects: Sequence[str]) -> tuple[Wrong, ...]:
    """Return the wrongs of these names, in order, each once.

    Raises ValueError, one line: for an unknown name, and for one that is played in none of these dialects.
    """
    found = []
    for name in dict.fromkeys(names):
        wrong = WRONGS.get(name)
        if wrong is None:
            near = difflib.get_close_matches(name, WRONGS, 3, 0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "`mews proxy --list` lists them"
            raise ValueError(f"--wrong {name}: unknown; {hint}")
        if not set(wrong.dialects) & set(dialects):
            raise ValueError(f"--wrong {name}: is for {', '.join(wrong.dialects)}, not for {', '.join(dialects)}")
        found.append(wrong)
    return tuple(found)


def played(
    wrongs: Sequence[Wrong],
    ask: Ask,
    *,
    seed: int | str = 0,
    wait: Callable[[float], object] | None = None,
) -> Ask:
    """Return a chassis behind these wrongs; each of them has dice of its own, by the seed and its name.

    Those of the wire stand nearest to the client, whatever the order: what they have packed or cut no other can read.
    """
    waits = wait or threading.Event().wait
    made: list[tuple[Wrong, Handler]] = []
    for wrong in sorted(wrongs, key=lambda wrong: wrong not in OVER_HTTP):
        made.append((wrong, wrong.make(Stage(random.Random(f"{seed}/{wrong.name}"), waits))))
    return in_front(made, ask)
