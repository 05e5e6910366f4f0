"""Pure helpers over dict-shaped Kubernetes objects."""
