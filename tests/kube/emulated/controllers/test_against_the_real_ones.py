"""The same lives of workloads under our controllers and under kube-controller-manager: the same objects, statuses and
events at every turn, down to the names of ReplicaSets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mews.harness.clusters.programs.finding import NEEDED
from tests.kube.emulated.apiserver.real_parts import missing
from tests.kube.emulated.controllers import autoscaler_stories, volume_stories
from tests.kube.emulated.controllers.owner_graphs import owner_graph
from tests.kube.emulated.controllers.stories import STORIES
from tests.kube.emulated.controllers.telling import Story, ours, theirs, title

_MISSING = missing(*NEEDED, "kube-controller-manager")

_ATTEMPTS = 3
"""On a busy machine changes that are meant to come one by one come together, and are worked off as one; and the twenty
workers of the real garbage collector race each other."""

_GRAPHS = [owner_graph(seed) for seed in range(60)]


@pytest.mark.wall
@pytest.mark.skipif(bool(_MISSING), reason=_MISSING or "-")
@pytest.mark.parametrize(
    "stories",
    [STORIES, _GRAPHS, volume_stories.STORIES, autoscaler_stories.STORIES],
    ids=["lives", "owners", "volumes", "autoscalers"],
)
def test_our_controllers_do_and_say_what_the_real_ones_do_and_say(stories: Sequence[Story], tmp_path: Path) -> None:
    told, left = ours(stories), list(stories)
    for attempt in range(_ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        expected = theirs(left, folder)
        left = [story for story in left if told[title(story)] != expected[title(story)]]
        if not left:
            return
    for story in left:
        assert told[title(story)] == expected[title(story)]
