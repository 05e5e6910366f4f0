"""Always-on oracles."""
