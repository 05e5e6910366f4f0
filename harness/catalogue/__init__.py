"""What comes with Mews, by name: the one place that lists it, and finds a shipped file by its name."""
