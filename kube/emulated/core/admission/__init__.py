"""The admission chain: built-in plugins, policies and webhooks, in the order of kube-apiserver 1.34."""
