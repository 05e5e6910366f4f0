"""Real Kubernetes in Docker, by kind: a cluster with one worker per host, our image in it."""
