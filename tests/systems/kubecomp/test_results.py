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
