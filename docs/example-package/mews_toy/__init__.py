"""What a package of yours may bring: a system, a dialect, a fault, an invariant, a step and a check."""
