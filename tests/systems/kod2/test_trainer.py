"""The parameter-server trainer: its arithmetic, its talk, and a job of real processes that is scaled."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario
from mews.kube.clock import rest
from mews.systems.kod2.errors import Kod2ConfigError
from mews.systems.kod2.trainer import network
from mews.systems.kod2.trainer.checkpoint import CheckpointFile
from mews.systems.kod2.trainer.evaluator import Evaluator
from mews.systems.kod2.trainer.names import look_up
from mews.systems.kod2.trainer.server import Server
from mews.systems.kod2.trainer.settings import TrainerSettings, read_settings, slice_of
from mews.systems.kod2.trainer.wire import receive, send
from mews.systems.kod2.trainer.worker import LoneWorker, Worker


def test_the_gradient_is_the_slope_of_the_loss():
    rng = numpy.random.default_rng(3)
    parameters, (pictures, kinds) = network.initial().astype(numpy.float64), network.batch(8, rng)
    loss, slope = network.gradient(parameters, pictures, kinds)
    for index in (0, 700, network.SIZE - 20, network.SIZE - 1):
        bent = parameters.copy()
        bent[index] += 1e-4
        assert (network.gradient(bent, pictures, kinds)[0] - loss) / 1e-4 == pytest.approx(slope[index], abs=2e-3)


@pytest.mark.parametrize("servers", [1, 2, 3, 7])
def test_servers_share_all_parameters_without_overlap(servers):
    owned = [range(network.SIZE)[slice_of(index, servers)] for index in range(servers)]
    assert [number for part in owned for number in part] == list(range(network.SIZE))


def test_settings_come_from_tf_config_and_are_refused_in_one_line():
    config = {"cluster": {"ps": ["a:1"], "worker": ["b:1", "c:1"]}, "task": {"type": "worker", "index": 1}}
    settings = read_settings({"TF_CONFIG": json.dumps(config), "TRAIN_STEPS": "7"})
    assert (settings.role, settings.address, settings.steps) == ("worker", "c:1", 7)
    with pytest.raises(Kod2ConfigError, match="TRAIN_STEPS: 'many': must be a number"):
        read_settings({"TF_CONFIG": json.dumps(config), "TRAIN_STEPS": "many"})
    with pytest.raises(Kod2ConfigError, match=r"TF_CONFIG: '\{': must name cluster and task"):
        read_settings({"TF_CONFIG": "{"})
    alone = {"cluster": {"worker": ["b:1"]}, "task": {"type": "evaluator", "index": 0}}
    with pytest.raises(Kod2ConfigError, match="task 'evaluator' with 0 servers"):
        read_settings({"TF_CONFIG": json.dumps(alone)})
    assert read_settings({}).task == "worker-0"  # the task of a job that has only this one


def test_a_task_is_told_of_the_servers_by_a_configuration_that_names_no_other_worker():
    sparse = {"cluster": {"ps": ["a:1"], "worker": {"3": "e:1"}}, "task": {"type": "worker", "index": 3}}
    settings = read_settings({"TF_CONFIG": json.dumps(sparse)})
    assert (settings.task, settings.servers, settings.workers) == ("worker-3", ("a:1",), ("e:1",))


def test_names_are_looked_up_in_a_hosts_file(tmp_path):
    file = tmp_path / "hosts"
    assert look_up("a.default.svc", file) is None
    file.write_text("127.0.0.7 a.default a.default.svc # the server\n")
    assert look_up("a.default.svc", file) == "127.0.0.7"
    assert look_up("server", file) is None


@pytest.mark.wall
def test_two_servers_and_workers_that_come_and_go_train_together(monkeypatch, tmp_path):
    (tmp_path / "hosts").write_text("127.0.0.1 one two\n")
    monkeypatch.setenv("MEWS_HOSTS", str(tmp_path / "hosts"))

    async def train():
        addresses = (f"one:{_free_port()}", f"two:{_free_port()}")
        settings = [TrainerSettings("ps", i, addresses, ("w:1",) * 3, steps=400, pause_s=0.0, quorum=1) for i in (0, 1)]
        servers = [Server(own) for own in settings]
        serving = [
            asyncio.create_task(server.serve("127.0.0.1", int(own.address.rpartition(":")[2])))
            for server, own in zip(servers, settings, strict=True)
        ]
        workers = [
            Worker(TrainerSettings("worker", i, addresses, ("w:1",) * 3, steps=400, pause_s=0.002)) for i in range(3)
        ]
        first, second, third = (asyncio.create_task(worker.run()) for worker in workers)
        while servers[0].step < 60:
            await rest(0.01)
        second.cancel()  # one goes in the middle of it
        await asyncio.wait_for(asyncio.gather(first, third), 60)
        for task in (second, *serving):
            task.cancel()
        await asyncio.gather(second, *serving, return_exceptions=True)
        return servers, workers

    servers, workers = asyncio.run(train())
    assert all(400 <= server.step <= 403 for server in servers)
    assert servers[0]._smooth < 1.8 < numpy.log(10)
    assert all(worker.steps > 0 for worker in workers)


def test_what_was_learnt_is_kept_whole_or_not_at_all(tmp_path):
    file = CheckpointFile(tmp_path / "kept", "ps-0-of-1")
    assert file.load(3) is None
    file.save(7, numpy.array([1, 2, 3], dtype=numpy.float32))
    found = file.load(3)
    assert (found.step, list(found.parameters)) == (7, [1, 2, 3])
    assert file.load(4) is None  # of another number of servers
    (tmp_path / "kept" / "ps-0-of-1.npz").write_bytes(b"half")
    assert file.load(3) is None
    CheckpointFile(None, "ps-0-of-1").save(7, numpy.zeros(3, dtype=numpy.float32))  # nowhere


class OneServer:
    """A server on a port of this machine, and clients for it."""

    def __init__(self, monkeypatch, tmp_path, **settings):
        (tmp_path / "hosts").write_text("127.0.0.1 one\n")
        monkeypatch.setenv("MEWS_HOSTS", str(tmp_path / "hosts"))
        self.port, self.given = _free_port(), {"pause_s": 0.0, **settings}

    def settings(self, role, index=0, **more):
        return TrainerSettings(role, index, (f"one:{self.port}",), ("w:1",) * 2, **{**self.given, **more})

    def start(self):
        server = Server(self.settings("ps"))
        return server, asyncio.create_task(server.serve("127.0.0.1", self.port))


@pytest.mark.wall
def test_a_chief_trains_and_evaluators_look_on_until_it_is_done(monkeypatch, tmp_path):
    one = OneServer(monkeypatch, tmp_path, steps=300, eval_s=0.02)

    async def train():
        server, serving = one.start()
        chief, worker = Worker(one.settings("chief")), Worker(one.settings("worker"))
        evaluators = [Evaluator(one.settings("evaluator", index)) for index in (0, 1)]
        await asyncio.wait_for(asyncio.gather(*(task.run() for task in (chief, worker, *evaluators))), 60)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return server, chief, evaluators

    server, chief, evaluators = asyncio.run(train())
    assert server.step >= 300 and chief.steps > 0
    for evaluator in evaluators:
        (first, before), (last, after) = evaluator.losses[0], evaluator.losses[-1]
        assert first < last >= 300 and after < before


@pytest.mark.wall
def test_a_gradient_is_applied_at_once_and_answered_to_its_worker_alone():
    settings = TrainerSettings("ps", 0, ("one:1",), ("w:1",) * 2)

    async def train():
        listening = await asyncio.start_server(Server(settings)._talk, "127.0.0.1", 0)
        talks = []
        for name in ("worker-0", "worker-1"):
            reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
            await send(writer, {"worker": name})
            talks.append((reader, writer))
        begun = [await receive(reader) for reader, _ in talks]
        (first, to_first), (second, to_second) = talks
        slope = numpy.ones_like(begun[0].vector)
        await send(to_first, {"loss": 2.0}, slope)
        fresh = await receive(first)
        await send(to_second, {"loss": 2.0}, slope)  # of the parameters that it was given at the start
        later = await receive(second)
        for writer in (to_first, to_second):
            writer.close()
        listening.close()
        return begun, fresh, later

    begun, fresh, later = asyncio.run(asyncio.wait_for(train(), 60))
    assert [each.fields["step"] for each in (*begun, fresh, later)] == [0, 0, 1, 2], "the second was told nothing of 1"
    for times, told in ((1, fresh), (2, later)):
        assert numpy.allclose(told.vector, begun[0].vector - times * settings.rate, atol=1e-6)


@pytest.mark.wall
@pytest.mark.parametrize("kept", [False, True], ids=["from its workers", "from its checkpoint"])
def test_a_server_that_is_started_anew_goes_on_where_it_was(monkeypatch, tmp_path, kept):
    folder = tmp_path / "checkpoints" if kept else None
    one = OneServer(monkeypatch, tmp_path, steps=100_000, log_every=10, checkpoints=folder)

    async def train():
        server, serving = one.start()
        training = asyncio.create_task(Worker(one.settings("worker", pause_s=0.001)).run())
        while server.step < 100:
            await rest(0.01)
        if kept:
            training.cancel()  # nobody is left who could tell it
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        for writer in list(server._workers):
            writer.transport.abort()  # as when a process dies
        again, serving = one.start()
        while not kept and again.step < server.step:
            await rest(0.01)
        steps = again.step
        for task in (training, serving):
            task.cancel()
        await asyncio.gather(training, serving, return_exceptions=True)
        return server.step, steps

    before, after = asyncio.run(asyncio.wait_for(train(), 60))
    assert after >= (before - 10 if kept else before)


@pytest.mark.wall
def test_a_worker_without_servers_trains_by_itself_and_goes_on_from_its_checkpoint(tmp_path):
    settings = TrainerSettings("worker", 0, (), (), steps=60, pause_s=0.0, log_every=20, checkpoints=tmp_path)
    asyncio.run(LoneWorker(settings).run())
    again = LoneWorker(settings)
    assert again.step == 60


def _free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.wall
def test_the_loss_falls_while_a_job_of_processes_has_one_three_and_two_workers():
    path = Path(mews.scenarios.__file__).parent / "elastic" / "19-trainer.yaml"
    result = Engine(RunOptions(time="wall")).run(load_scenario(path), 1).result
    assert (result.verdict, result.reason) == ("passed", "")


@pytest.mark.wall
def test_a_server_ends_when_it_is_told_to(tmp_path):
    """By itself: as the first process of a container it would be killed after the grace period only."""
    config = {"cluster": {"ps": ["localhost:1"], "worker": ["localhost:2"]}, "task": {"type": "worker", "index": 0}}
    argv = [sys.executable, "-u", "-m", "mews.systems.kod2.trainer"]
    environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as task:
        for _ in range(300):
            caught = Path(f"/proc/{task.pid}/status").read_text().partition("SigCgt:\t")[2][:16]
            if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
                break
            time.sleep(0.1)
        task.terminate()
        assert task.wait(10) == 128 + signal.SIGTERM
