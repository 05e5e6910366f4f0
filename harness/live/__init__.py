"""A running ``mews up`` that one can look into and act on: its journal, steps by hand, explanations, recordings."""
