"""Always-on oracles over every run, judged from the journal, the watches and the chassis' table.

=== =====================================================  ================
1   a device is on at most one host port                   ``single_port``
2   a device in use never moves or disappears              ``in_use``
3   no whole device is given to two live pods              ``single_holder``
4   allocatable <= what NVML shows <= chassis table        ``visible``
5   no device stays unattached beyond its bound            ``unattached``
6   env, checkpoint, pod resources and chassis agree       ``agreement``
7   resourceVersions grow, watches have no gap             ``watches``
8   what fits is eventually scheduled                      ``scheduled``
10  no XID and no holder loses its GPU by surprise         ``orderly``
18  a kubelet's checkpoint and events say what it did      ``kubelet_reports``
20  a pod's conditions agree with its phase                ``pod_conditions``
21  a scheduler's events account for every node            ``scheduler_reports``
22  a controller says what it did, and keeps what it makes ``controller_reports``
23  a silent node is called unknown in its time            ``silent_nodes``
24  a fault that fires shows its effect                    ``fault_effects``
25  a pod is bound where what it asks for is free          ``placements``
26  a kubelet does nothing before it can have seen why     ``kubelet_spans``
27  no component fails over its work                       ``own_failures``
28  a node's taints say what its Ready condition says      ``node_taints``
29  one device, one claim, one node at every moment        ``single_claim``
49  a claim is free once its pods are over                 ``reservations``
70  a host's layers rise and fall in their order           ``host_layers``
71  a device leaves its host unused, or is lost            ``departures``
72  a fault fires when it was declared to, and as often    ``fault_counts``
73  a fault strikes what it was declared for               ``fault_strikes``
74  a fault on a layer strikes devices that come up        ``layer_strikes``
75  every line has a known name and all its fields         ``vocabulary``
76  what is done to a pod or a node has its event          ``reported``
89  a refused pod is bound when something happens          ``prompted``
96  a host sees what its chassis does to its devices       ``host_sights``
1001 an operation of a chassis takes what its profile says  ``operation_times``
1002 the layers of a device come up in their time           ``layer_times``
1003 a kubelet that is there acts in its time               ``kubelet_pace``
1004 a kubelet gives claims back before it ends a pod       ``prepared_claims``
1005 a pod is bound where its own words allow it            ``spec_placements``
1006 what controllers write of pods is what they are        ``controller_states``
1007 a condition has one state, and a line of it is news    ``condition_news``
1008 nobody is preempted whose place is not needed          ``preemptions``
1009 a GPU is drained before software takes it              ``drained``
=== =====================================================  ================

Further ones, with other numbers, are the systems' (``SystemJudging.invariants``) and judged where these run.
"""

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.oracle import Oracle
from mews.harness.invariants.verdict import Violation

__all__ = ["Bounds", "Oracle", "Violation"]
