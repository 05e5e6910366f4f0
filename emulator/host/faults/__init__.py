"""What can go wrong between a chassis port and a program that uses the GPU (contract chassis.md 6, host.md 1).

The same shape as the faults of a chassis: a frozen dataclass of its parameters with ``kind``, ``on`` (the arrows that
it looks at), ``count``, ``may_break`` and ``grace_s``, and those of these methods that it needs:

- ``cuts(function, arrow)``: keep that layer from coming up;
- ``slows(function, arrow)``: seconds that it takes longer;
- ``tops(function, bench)``: the device has just come up whole; True if the fault did something;
- ``arm(bench)``: it was just added, so it sets its own time (``bench.fire``); ``happen(bench)``: that time has come;
- ``undo(bench)``: it is being cleared.
"""
