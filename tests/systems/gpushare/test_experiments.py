"""The experiments on sharing GPUs in a smaller form."""

import pytest

from mews.harness.experiments.playing import play
from mews.kube.system.comparing import report
from mews.kube.system.experiment import first_seeds
from mews.kube.system.journal import Line
from mews.systems.gpushare.experiment import binpack, sharing
from mews.systems.gpushare.experiment.all import EXPERIMENTS


def by_name(comparisons):
    return {each.name: each for each in comparisons}


def test_both_experiments_have_their_names():
    assert [each.name for each in EXPERIMENTS] == ["gpushare-sharing", "gpushare-binpack"]


def test_on_the_components_sharing_shortens_the_wait_and_needs_fewer_gpus(monkeypatch):
    monkeypatch.setitem(sharing.STORIES, "development", sharing.SharingStory(6, 4, 300.0, 30.0))
    monkeypatch.setattr(sharing, "SCARCE", 2)
    tasks = [sharing.task_of("development", mode, gpus, 1) for mode in sharing.MODES for gpus in (2, 6)]
    rows = sharing.rows(first_seeds(1), [play(sharing.keep, task) for task in tasks])
    needed = {mode: sharing.values(rows, "development", mode, "gpus_needed") for mode in sharing.MODES}
    wait = {mode: sharing.values(rows, "development", mode, "mean_wait_s") for mode in sharing.MODES}
    use = {mode: sharing.values(rows, "development", mode, "utilisation") for mode in sharing.MODES}
    assert needed["shared"][0] * 2 <= needed["whole"][0] <= 6
    assert wait["shared"][0] < wait["whole"][0]
    assert use["whole"] == [pytest.approx(4 / 15)]
    assert use["shared"][0] > 2 * use["whole"][0]


def test_gpus_in_use_are_counted_from_allocations_and_ends():
    def line(t, event, pod, **fields):
        return Line(0, t, "kubelet", "kubelet/node", event, {"pod": pod, **fields})

    lines = [
        line(0.0, "allocated", "a", devices=["GPU-0-_-0"]),
        line(10.0, "allocated", "b", devices=["GPU-0-_-5"]),
        line(20.0, "allocated", "c", devices=["GPU-1-_-0"]),
        line(30.0, "pod-ended", "c"),
        line(40.0, "pod-ended", "a"),
        line(50.0, "pod-ended", "b"),
    ]
    assert sharing._occupied(lines, 4) == (2, 60.0, 4 * 90.0)


def test_by_sum_pods_are_sent_where_no_gpu_can_hold_them_and_per_device_they_are_refused():
    rows = binpack.rows(first_seeds(3), [binpack.run(seed) for seed in binpack.tasks(first_seeds(3))])
    found = by_name(binpack.BINPACK.comparisons({"rows": rows}))
    broken, refused = binpack.OUTCOMES["broken"], binpack.OUTCOMES["refused"]
    assert found[f"sum: {broken}, %"].ours == found[f"per device, best fit: {refused}, %"].ours > 0
    assert found[f"per device, best fit: {broken}, %"].ours == 0
    assert found[f"per device, emptiest: {refused}, %"].ours > found[f"per device, best fit: {refused}, %"].ours
    for row in rows:
        assert sum(row[outcome] for outcome in binpack.OUTCOMES) == binpack.PODS
    assert binpack.BINPACK.figures({"rows": rows})[0].name == "gpushare-binpack"
    assert "| sum: " in report(binpack.BINPACK, {"rows": rows}, {"rows": first_seeds(3)})
