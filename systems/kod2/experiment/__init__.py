"""The experiment of the KOD2 paper, section 5: cells, a simulation through the operator's own policy, tables."""
