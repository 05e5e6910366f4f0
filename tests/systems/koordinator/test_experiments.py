"""The experiments on fine-grained devices in a smaller form."""

from itertools import combinations

from mews.kube.system.comparing import picked, report
from mews.kube.system.experiment import first_seeds
from mews.systems.koordinator.experiment import fraction, links
from mews.systems.koordinator.experiment.all import EXPERIMENTS
from mews.systems.koordinator.experiment.nodes import cube_mesh
from mews.systems.koordinator.selection import Bandwidth


def by_name(comparisons):
    return {each.name: each for each in comparisons}


def test_both_experiments_have_their_names():
    assert [each.name for each in EXPERIMENTS] == ["koordinator-links", "koordinator-fraction"]


def test_the_best_choice_is_never_slower_than_the_others_and_as_good_as_any_set_of_an_empty_node():
    rows = links.rows(first_seeds(3), [links.run(seed) for seed in links.tasks(first_seeds(3))])
    for server in links.SERVERS:
        for ask in links.ASKS:
            for taken in links.TAKEN:
                for seed in (1, 2, 3):
                    cell = picked(rows, server=server, ask=ask, taken=taken, seed=seed)
                    slowest = {row["way"]: row["slowest_mb_s"] for row in cell}
                    assert slowest["best"] >= max(slowest.values()), (server, ask, taken, seed)
    bandwidth = Bandwidth(cube_mesh().links, "gpu")
    fastest = max(bandwidth.quality(four)[0] for four in combinations(range(8), 4))
    empty = picked(rows, server="V100, hybrid cube mesh", taken=0, way="best", seed=1)
    assert {row["slowest_mb_s"] for row in empty if row["ask"] != "one pod, 2"} == {fastest}
    found = by_name(links.LINKS.comparisons({"rows": rows}))
    mesh = "slowest pair, GB/s: V100, hybrid cube mesh; one pod, 2; "
    assert found[f"{mesh}kubelet"].ours < found[f"{mesh}minor"].ours < found[f"{mesh}best"].ours
    assert found["slowest pair, GB/s: A100, NVSwitch; gang, 2 + 2; kubelet"].ours == 300.0
    assert len(links.LINKS.figures({"rows": rows})[0].panels) == 3


def test_parts_place_more_pods_than_whole_gpus_and_filled_one_by_one_they_leave_gpus_whole():
    rows = fraction.rows(first_seeds(10), [fraction.run(seed) for seed in fraction.tasks(first_seeds(10))])
    found = by_name(fraction.FRACTION.comparisons({"rows": rows}))
    placed, whole = fraction.METRICS["placed"], fraction.METRICS["whole_left"]
    assert found[f"whole: {placed}"].ours == 8
    for way in ("minor", "leastAllocated"):
        assert found[f"{way}: {placed}"].ours > found[f"spread: {placed}"].ours > 8
        assert found[f"{way}: {whole}"].ours > found[f"spread: {whole}"].ours
    assert "| minor: " in report(fraction.FRACTION, {"rows": rows}, {"rows": first_seeds(10)})
