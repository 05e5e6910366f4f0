"""What kubelets answer for the API server: logs, commands, proxies, measures."""
