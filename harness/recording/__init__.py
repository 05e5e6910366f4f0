"""Recordings of real clusters: what was seen of nodes, pods, events and chassis, as a hardware file and a scenario.

Reading (``cluster_watch``, ``chassis_polls``, ``collected``) and writing (``written``) do I/O. Between them everything
is pure: observations in, documents out (``inference``). What may hold secrets never becomes an observation
(``reduction``).
"""
