"""Small clusters and jobs for the policy's tests: CPU in cores, memory in GiB."""

from mews.systems.kod2.model import (
    ClusterState,
    ElasticJob,
    NodeRoom,
    Queues,
    Running,
    TaskRequest,
    WaitingJob,
    worker_task,
)


def ask(cpu, memory=0.0, pooled=0, nodes=None):
    return TaskRequest((int(cpu * 1000), int(memory * 2**30), 1), pooled, nodes)


def node(name, cpu=10, memory=32, used_cpu=0, pool=None):
    allocatable = (int(cpu * 1000), int(memory * 2**30), 110)
    free = (allocatable[0] - int(used_cpu * 1000), *allocatable[1:])
    return NodeRoom(name, allocatable, free, pool)


def cluster(*cpus, pools=None):
    return ClusterState(tuple(node(f"n{i}", cpu) for i, cpu in enumerate(cpus)), pools or {})


def job(name, worker=1.0, *, ps=1.0, least=1, wanted=None, most=None, at=0.0, memory=1.0, pooled=0):
    """A job with one parameter server of ``ps`` cores and workers of ``worker`` cores (``pooled`` devices each)."""
    wanted = least if wanted is None else wanted
    fixed = (("ps-0", ask(ps, memory)),) if ps else ()
    return ElasticJob(name, at, fixed, ask(worker, memory, pooled), least, wanted, wanted if most is None else most)


def running(what, server, *workers, scaled_s=None, finishing=False):
    """The job with its parameter server on ``server`` and worker i on the i-th of ``workers`` (None: there is none)."""
    tasks = {"ps-0": server} if what.fixed else {}
    tasks |= {worker_task(i): where for i, where in enumerate(workers) if where is not None}
    return Running(what, tasks, scaled_s, finishing)


def queues(where, *, waiting=(), running=()):
    return Queues(where, tuple(w if isinstance(w, WaitingJob) else WaitingJob(w) for w in waiting), tuple(running))
