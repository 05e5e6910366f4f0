"""Objects under one growing version, with watches; what a kind is; the refusals."""
