"""Experiments on sharing GPUs: the design gives stories and rules and no figures; these put numbers to them. Pure."""
