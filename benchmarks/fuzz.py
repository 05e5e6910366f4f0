"""How much of a scenario worlds cover, drawn in three ways: ``python benchmarks/fuzz.py [SCENARIO] [WORLDS]``.

A situation is a feature of ``mews.harness.fuzz.world``: which kind of line came after which, and what went on when a
fault fired or a component ended.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import time

from hypothesis import HealthCheck, Phase, given, settings, target
from hypothesis import seed as seeded
from hypothesis import strategies as st

from mews.harness.catalogue.files import shipped
from mews.harness.fuzz.menu import Menu
from mews.harness.fuzz.world import Player
from mews.harness.scenario.loader import load_scenario

CHANGED = 0.6
"""So often a world is one that went where none had been, changed."""


def anew(menu: Menu, player: Player, seed: int, worlds: int) -> set[str]:
    rng, seen = random.Random(seed), set()
    for _ in range(worlds):
        seen |= player.play(menu.plan(rng)).features
    return seen


def changed(menu: Menu, player: Player, seed: int, worlds: int) -> set[str]:
    rng, seen, kept = random.Random(seed), set(), []
    for _ in range(worlds):
        plan = menu.changed(rng.choice(kept), rng) if kept and rng.random() < CHANGED else menu.plan(rng)
        features = player.play(plan).features
        if features - seen:
            kept.append(plan)
        seen |= features
    return seen


def by_hypothesis(menu: Menu, player: Player, seed: int, worlds: int) -> set[str]:
    seen, played = set(), [0]

    @seeded(seed)
    @settings(
        max_examples=worlds,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def play(rng: random.Random) -> None:
        if played[0] < worlds:
            played[0] += 1
            features = player.play(menu.plan(rng)).features
            target(float(len(features - seen)), label="new")
            seen.update(features)

    play()
    return seen


def main() -> None:
    name, worlds = [*sys.argv[1:], "demo", "150"][:2] if len(sys.argv) < 3 else sys.argv[1:3]
    logging.disable(logging.CRITICAL)
    player = Player(load_scenario(shipped("scenario", name)))
    _, moments = player.moments()
    menu = Menu.of(player.scenario, moments)
    for seed in (1, 2):
        for way in (anew, changed, by_hypothesis):
            began = time.monotonic()
            covered = len(way(menu, player, seed, int(worlds)))
            took = round(time.monotonic() - began, 1)
            print(json.dumps({"bench": f"fuzz {way.__name__}", "seed": seed, "value": covered, "seconds": took}))


if __name__ == "__main__":
    main()
