"""What a run found, in four forms."""
