"""What can go wrong with a chassis, each fault one small class with the same shape (contract chassis.md 6).

A fault is a frozen dataclass of its parameters with these class attributes:

- ``kind``: its name in specs; ``on``: the operations it can strike; ``count``: how often it fires unless told (None =
  until cleared);
- ``may_break``: the invariants that its effect may break, and ``grace_s`` (or a property: it follows from the fault's
  own parameters): for how long the effect lasts in the hardware after the fault fired, or, where it struck an
  operation, after that was answered; infinite: until it is cleared. What follows from it in the layers above (who has
  not looked again yet, whose pod still holds the device) is not its business: whoever judges adds that, from the
  configuration.

and those of these methods that it needs (``bench`` is what it may do to the chassis):

- ``strike(operation, bench)``: change an operation that is just beginning, True if it did;
- ``arm(bench)``: it was just added without an ``operation`` in its spec, so it sets its own time (``bench.fire``);
- ``happen(bench)``: its own time has come;
- ``delay(event)``: hold this event back for that many seconds;
- ``undo(bench)``: it is being cleared.
"""
