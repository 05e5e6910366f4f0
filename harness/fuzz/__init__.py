"""Worlds of chance: a scenario with drawn faults, crashes and deletions beside its steps, until a law is broken."""
