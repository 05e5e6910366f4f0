"""DMTF's interoperability profiles (DSP0272) as clauses: one per resource, property and action that they ask for."""
