"""The same scenario on several clusters: what was told of each thing, compared."""
