"""A Kubernetes API server of our own: a versioned store with watches, in process and over HTTP."""
