"""Jobs: pods that run to an end."""
