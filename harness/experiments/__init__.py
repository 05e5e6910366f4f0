"""The papers' experiments, repeated on the simulator: each runs alone, ``python -m mews.harness.experiments.NAME``."""
