"""Which keys of a scenario each way to run honours, and what becomes of those that it does not."""
