"""Lean simulators: the components' own policies, without an API and without pods, for thousands of runs."""
