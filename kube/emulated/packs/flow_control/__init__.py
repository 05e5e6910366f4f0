"""flowcontrol.apiserver.k8s.io: stored and validated; no request is queued."""
