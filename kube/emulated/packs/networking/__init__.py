"""networking.k8s.io, and how the API server reaches Services."""
