"""In-process adapters of the ports, and the fence that makes a crash a crash."""
