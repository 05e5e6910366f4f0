"""A cluster that is there already, used in namespaces of its own."""
