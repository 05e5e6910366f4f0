"""What many kinds are checked for."""
