"""What a journal says of reconfigurations."""

from mews.harness.journal import Journal
from mews.systems.kubecomp.results import reconfigurations


def test_moves_are_attaches_and_a_demand_that_they_serve_is_one_reconfiguration():
    journal = Journal(lambda: 0.0)

    def ask(pod, node, demand):
        journal.write("api", f"pod/default/{pod}", "annotations", annotations={"dst_node": node, "gpu_demand": demand})

    def attach(host):
        journal.write("chassis", "chassis/A", "detached", host=None)
        journal.write("chassis", "chassis/A", "attached", host=host)

    ask("a", "host-1", "2")
    attach("host-1")
    attach("host-1")
    ask("a", None, None)
    ask("b", "host-2", "1")
    ask("b", None, None)
    attach("host-2")
    ask("a", "host-3", "1")
    attach("host-3")
    assert reconfigurations(journal.lines()) == 2


def test_an_event_that_comes_again_is_a_reconfiguration_of_its_own_where_a_device_came_for_it():
    journal = Journal(lambda: 0.0)

    def event():
        journal.write("api", "kubecomp-scheduler", "event", reason="Reconfig", object="pod/default/a")

    def attach():
        journal.write("chassis", "chassis/A", "attached", host="host-1")

    annotations = {"dst_node": "host-1", "gpu_demand": "1"}
    journal.write("api", "pod/default/a", "annotations", annotations=annotations)
    event()
    attach()
    event()
    assert reconfigurations(journal.lines()) == 1, "nothing came for the second"
    attach()
    assert reconfigurations(journal.lines()) == 2
