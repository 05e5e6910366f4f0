"""KOD2: the elastic operator for TFJobs (contract kod2.md)."""
