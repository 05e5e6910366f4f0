"""KOD2: the elastic operator for TFJobs (seed 003, contract kod2.md)."""
