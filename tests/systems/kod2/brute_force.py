"""Placements by trying everything, in arithmetic of its own: what the placement under test is held against."""

from itertools import product

from mews.systems.kod2.model import ClusterState, ElasticJob, NodeRoom, TaskRequest


def most_workers(cluster, job):
    """The most workers that fit beside the fixed tasks, over all ways to place those; None where there is no way."""
    best = None
    for homes in product(cluster.nodes, repeat=len(job.fixed)):
        left = {node.name: list(node.free) for node in cluster.nodes}
        devices = dict(cluster.pools)
        if not all(_put(left, devices, node, ask) for node, (_, ask) in zip(homes, job.fixed, strict=True)):
            continue
        count = 0
        while any(_put(left, devices, node, job.worker) for node in cluster.nodes):
            count += 1
        best = count if best is None else max(best, count)
    return best


def _put(left, devices, node, ask):
    if ask.nodes is not None and node.name not in ask.nodes:
        return False
    if ask.pooled and (node.pool is None or devices.get(node.pool, 0) < ask.pooled):
        return False
    if any(want > have for want, have in zip(ask.amounts, left[node.name], strict=True)):
        return False
    left[node.name] = [have - want for have, want in zip(left[node.name], ask.amounts, strict=True)]
    if ask.pooled:
        devices[node.pool] -= ask.pooled
    return True


def is_right(cluster, job, tasks):
    """Whether a placement holds the fixed tasks, at least the minimum of workers, and no node or pool twice."""
    nodes = {node.name: node for node in cluster.nodes}
    left = {node.name: list(node.free) for node in cluster.nodes}
    devices, fixed = dict(cluster.pools), dict(job.fixed)
    workers = [task for task in tasks if task.startswith("worker-")]
    return (
        set(tasks) - set(workers) == set(fixed)
        and job.minimum <= len(workers) <= job.wanted
        and all(_put(left, devices, nodes[node], fixed.get(task, job.worker)) for task, node in tasks.items())
    )


def random_case(rng):
    """A small cluster and a job of one to four fixed tasks that is near the limit of what fits."""
    pools = {pool: rng.randint(0, 5) for pool in ("p", "q")} if rng.random() < 0.3 else {}
    nodes = []
    for number in range(rng.randint(1, 4)):
        whole = (rng.randint(5, 14), rng.randint(5, 14), rng.randint(3, 8))
        free = tuple(rng.randint(max(0, amount - 3), amount) for amount in whole)
        nodes.append(NodeRoom(f"n{number}", whole, free, rng.choice(("p", "q", None)) if pools else None))

    def ask(most):
        pooled = rng.choice((0, 0, 1, 2)) if pools else 0
        allowed = frozenset(node.name for node in nodes if rng.random() < 0.7) if rng.random() < 0.2 else None
        return TaskRequest((rng.randint(1, most), rng.randint(0, most), 1), pooled, allowed)

    kinds = [ask(6) for _ in range(rng.randint(1, 3))]
    fixed = tuple((f"ps-{number}", rng.choice(kinds)) for number in range(rng.randint(1, 4)))
    least = rng.randint(1, 3)
    wanted = least + rng.randint(0, 3)
    return ClusterState(tuple(nodes), pools), ElasticJob("j", 0.0, fixed, ask(6), least, wanted, wanted)


def differences(rng, count):
    """Random cases whose placement is not as good as the best there is: (cluster, job, placement, most workers); and
    how many of the cases had one at all."""
    from mews.systems.kod2.placement import Feasibility, feasibility, place
    from mews.systems.kod2.room import FreeRoom

    found, placed = [], 0
    for _ in range(count):
        cluster, job = random_case(rng)
        most, tasks = most_workers(cluster, job), place(FreeRoom(cluster), job)
        fits = most is not None and most >= job.minimum
        placed += fits
        if fits:
            right = (
                tasks is not None
                and is_right(cluster, job, tasks)
                and len(tasks) == len(job.fixed) + min(most, job.wanted)
            )
        else:
            right = tasks is None
        answer = Feasibility.YES if fits else Feasibility.NO
        if not right or feasibility(FreeRoom(cluster), job) is not answer:
            found.append((cluster, job, tasks, most))
    return found, placed
