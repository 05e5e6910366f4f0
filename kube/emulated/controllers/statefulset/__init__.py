"""StatefulSets: pods with names of their own, one after the other."""
