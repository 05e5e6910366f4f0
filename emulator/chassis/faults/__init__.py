"""What can go wrong with a chassis, each fault one small class with the same shape (contract chassis.md 6).

A fault is a frozen dataclass of its parameters with these class attributes:

- ``kind``: its name in specs; ``on``: the operations it can strike; ``count``: how often it fires unless told (None =
  until cleared); ``may_break``: the invariants it may break, and for ``grace_s`` after it fired.

and those of these methods that it needs (``bench`` is what it may do to the chassis):

- ``strike(operation, bench)``: change an operation that is just beginning, True if it did;
- ``arm(bench)``: it was just added without an ``operation`` in its spec, so it sets its own time (``bench.fire``);
- ``happen(bench)``: its own time has come;
- ``delay(event)``: hold this event back for that many seconds;
- ``undo(bench)``: it is being cleared.
"""
