"""What a published system says of itself, so that a harness which has never heard of it can run, replace, deploy,
journal and judge it. The types lie here, below every system; a system is one value of them in its ``system.py``."""
