"""CustomResourceDefinitions and the kinds that they add."""
