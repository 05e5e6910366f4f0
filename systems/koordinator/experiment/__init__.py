"""Experiments on fine-grained devices: the proposal gives motives and rules and no figures; these put numbers to them.
Pure."""
