"""Results as text, JSON and JUnit."""
