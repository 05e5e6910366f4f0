"""What this machine has and lacks for each way to run, as `mews doctor` reports it."""
