"""What the three hand-overs cost."""
