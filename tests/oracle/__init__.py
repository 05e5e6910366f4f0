"""Does the oracle cry wolf? Worlds with faults drawn by seed, in virtual time; see ``__main__`` for the command."""
