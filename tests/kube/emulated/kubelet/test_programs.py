"""Programs that systems bring to be played: found by the image's word, one player per cluster, told what starts."""

import pytest

from mews.kube.clock import Pace
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.images import ContainerBehaviour, Image
from mews.kube.emulated.kubelet.programs import PlayedPrograms, environment_of
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.system.program import PlayedProgram, no_program


class Counting:
    """Numbers the processes that start."""

    def __init__(self, pace):
        self.started = 0

    def start(self, pod, env, process):
        if "WRONG" in env:
            raise ValueError("WRONG: must not be set")
        self.started += 1
        process.emit(f"{self.started}\n")


class Process:
    """Keeps what is written."""

    def __init__(self):
        self.text = ""

    def emit(self, text):
        self.text += text


def launch(program="toy/counting", *, command=(), annotations=None, **env):
    pod = {"metadata": {"name": "p", "uid": "u", "annotations": annotations or {}}, "spec": {}}
    image = Image("toy/image", simulate=ContainerBehaviour(program=program))
    return Launch(pod, "main", 0, image, command, (), env)


def find(name):
    if name != "toy/counting":
        return no_program(name)
    return PlayedProgram(Counting, lambda annotations, speed: {"PACE": f"{float(annotations['pace']) / speed:g}"})


def printed(*launches):
    programs, process = PlayedPrograms(Pace(), find), Process()
    for each in launches:
        programs.start(each, process)
    return process.text


def test_all_containers_of_a_cluster_have_one_player():
    assert printed(launch(), launch()) == "1\n2\n"


def test_an_image_without_a_program_or_a_command_of_the_containers_own_is_left_alone():
    assert printed(launch(program=""), launch(command=("sleep", "1"))) == ""


def test_a_program_that_nobody_brings_does_not_start_and_is_named():
    with pytest.raises(StartError, match="image toy/image: program 'toy/other': no system brings such a program"):
        printed(launch("toy/other"))


def test_what_a_program_refuses_is_why_the_container_does_not_start():
    with pytest.raises(StartError, match="WRONG: must not be set"):
        printed(launch(WRONG="1"))


def test_a_real_process_is_told_what_makes_it_as_quick_as_the_played_one():
    assert environment_of(launch(annotations={"pace": "30"}), find, 10.0) == {"PACE": "3"}
    assert environment_of(launch(""), find, 10.0) == {}
    with pytest.raises(StartError, match="could not convert string to float: 'soon'"):
        environment_of(launch(annotations={"pace": "soon"}), find, 10.0)
